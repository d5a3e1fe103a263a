#include "lab/channels/channel_compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace weir {
namespace {

std::string condition_text(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) text += fmt::format("{}{}", text.empty() ? "" : ",", core);
  return text.empty() ? "none" : text;
}

void note(ChannelComparison& comparison, const char* what, const std::string& before, const std::string& after) {
  if (before != after) comparison.notes.push_back(fmt::format("{} differ: {} then, {} now", what, before, after));
}

std::string environment_text(const ChannelRun& run, const char* key) {
  const auto found = run.environment.find(key);
  if (found == run.environment.end() || found->is_null()) return "unknown";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

void add_notes(const ChannelRun& baseline, const ChannelRun& test, ChannelComparison& comparison) {
  const auto& before = baseline.settings.conditions;
  const auto& after = test.settings.conditions;
  note(comparison, "cores", condition_text(before.cores), condition_text(after.cores));
  note(comparison, "devices", before.device, after.device);
  note(comparison, "milliseconds per sample", fmt::format("{}", before.sample_ms), fmt::format("{}", after.sample_ms));
  for (const char* key : {"architecture", "cpus", "kernel", "governor", "compiler", "build_type"})
    note(comparison, fmt::format("{}s", key).c_str(), environment_text(baseline, key), environment_text(test, key));
  if (baseline.status != "complete")
    comparison.notes.push_back(
        fmt::format("the baseline is {}: it has fewer processes than it was to have", baseline.status));
}

}  // namespace

void measure_channel(const CompareOptions& options, ChannelChange& change) {
  measure_processes(change.baseline, change.test, options, change);
  if (change.ratio && !change.p) change.reason += "; use --processes";
}

ChannelComparison compare_channels(const ChannelRun& baseline, const std::string& baseline_name, const ChannelRun& test,
                                   const CompareOptions& options) {
  const auto &before = baseline.settings.conditions, &after = test.settings.conditions;
  if (before.capacity != after.capacity)
    reject(fmt::format("the baseline '{}' has channels of {} commands, this run of {}", baseline_name, before.capacity,
                       after.capacity),
           fmt::format("Use --capacity {}.", before.capacity));
  ChannelComparison comparison;
  comparison.baseline = baseline_name;
  comparison.options = options;
  for (const ChannelResult& now : test.results) {
    const ChannelResult* const old = baseline.find(now.id());
    if (old == nullptr || old->unit != now.unit) {
      if (now.unavailable.empty()) comparison.test_only.push_back(now.id());
      continue;
    }
    if (!now.unavailable.empty() || !old->unavailable.empty()) continue;
    const ChannelSummary was = summarise(*old), is = summarise(now);
    ChannelChange& change = comparison.changes.emplace_back();
    change.id = now.id();
    change.is_ours = now.is_ours;
    change.is_less_better = channel_bench::is_less_better(now.unit);
    change.baseline = was.medians;
    change.test = is.medians;
    if (is.failures > 0) {  // regardless of its times
      change.verdict = Verdict::slower;
      change.reason = fmt::format("failed: {}", is.failure);
    } else if (was.failures > 0) {
      change.verdict = Verdict::not_comparable;
      change.reason = fmt::format("the baseline failed: {}", was.failure);
    } else {
      measure_channel(options, change);
    }
  }
  for (const ChannelResult& old : baseline.results)
    if (old.unavailable.empty() && test.find(old.id()) == nullptr) comparison.baseline_only.push_back(old.id());
  if (comparison.changes.empty())
    reject(fmt::format("no benchmark of this run is in the baseline '{}'", baseline_name),
           "Run the groups that it has, or save another baseline.");
  std::vector<Change*> ours, controls;
  for (ChannelChange& change : comparison.changes) (change.is_ours ? ours : controls).push_back(&change);
  comparison.hypotheses = decide(ours, options);
  decide(controls, options);
  add_notes(baseline, test, comparison);
  const auto moved = std::count_if(controls.begin(), controls.end(), [](const Change* change) {
    return change->verdict == Verdict::slower || change->verdict == Verdict::faster;
  });
  if (moved > 0 && !ours.empty())
    comparison.notes.push_back(
        fmt::format("{} of {} controls (floors and other people's queues, the same code on both sides) changed too: "
                    "the machine is not what it was",
                    moved, controls.size()));
  return comparison;
}

int exit_code(const ChannelComparison& comparison, bool is_strict) {
  const bool has_ours = std::any_of(comparison.changes.begin(), comparison.changes.end(),
                                    [](const ChannelChange& change) { return change.is_ours; });
  VerdictCounts counts;
  for (const ChannelChange& change : comparison.changes)
    if (change.is_ours || !has_ours) ++counts[change.verdict];
  return exit_code(counts, is_strict);
}

}  // namespace weir
