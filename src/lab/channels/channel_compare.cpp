#include "lab/channels/channel_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr std::size_t kMostSplits = 200;  // of one side against itself
constexpr std::size_t kMostToEnumerate = 12;
constexpr double kNoiseLevel = 0.95;

std::vector<double> logarithms(std::span<const double> values) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  return logs;
}

// Hodges and Lehmann: the median of all differences between a value of each side.
double difference(std::span<const double> before, std::span<const double> after) {
  std::vector<double> all;
  all.reserve(before.size() * after.size());
  for (const double old : before)
    for (const double now : after) all.push_back(now - old);
  return median(all);
}

// |log change| between the halves of a side, for every way to halve it or many random ones.
void add_splits(const std::vector<double>& side, double scale, SplitMix& random, std::vector<double>& differences) {
  const std::size_t count = side.size(), half = count / 2;
  if (count < 2) return;
  std::vector<double> first, second;
  const auto add = [&](auto is_first) {
    first.clear();
    second.clear();
    for (std::size_t i = 0; i < count; ++i) (is_first(i) ? first : second).push_back(side[i]);
    differences.push_back(scale * std::fabs(difference(first, second)));
  };
  if (count <= kMostToEnumerate) {
    for (std::uint32_t mask = 0; mask < (1U << count); ++mask)
      if (static_cast<std::size_t>(std::popcount(mask)) == half)
        add([&](std::size_t i) { return (mask >> i & 1U) != 0; });
    return;
  }
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::vector<bool> is_first(count);
  for (std::size_t split = 0; split < kMostSplits; ++split) {
    for (std::size_t i = 0; i < half; ++i)
      std::swap(order[i], order[i + random.below(static_cast<std::uint32_t>(count - i))]);
    for (std::size_t i = 0; i < count; ++i) is_first[order[i]] = i < half;
    add([&](std::size_t i) { return is_first[i]; });
  }
}

// Halves have fewer processes than sides, so they differ by more.
double scale_to(std::size_t side, std::size_t before, std::size_t after) {
  const auto part = [](std::size_t count) { return 1.0 / static_cast<double>(count); };
  return std::sqrt((part(before) + part(after)) / (part(side / 2) + part(side - side / 2)));
}

std::string percent(double factor) { return fmt::format("{:.0f} %", 100 * (factor - 1)); }

void decide(const ChannelCompareOptions& options, std::size_t hypotheses, ChannelChange& change) {
  const double slowness = std::log(*change.slowness), noise = std::log(*change.noise);
  const double most = std::log1p(options.threshold);
  const bool is_significant = *change.adjusted_p < options.significance;
  if (is_significant && std::fabs(slowness) > std::max(noise, most)) {
    change.verdict = slowness > 0 ? Verdict::slower : Verdict::faster;
  } else if (std::fabs(slowness) + noise <= most) {
    change.verdict = Verdict::same;
  } else {
    change.verdict = Verdict::ambiguous;
    const double least = smallest_p(change.baseline.size(), change.test.size()) * static_cast<double>(hypotheses);
    if (least >= options.significance && std::fabs(slowness) > std::max(noise, most))
      change.reason = fmt::format("{} against {} processes cannot prove anything among {} benchmarks; take more",
                                  change.test.size(), change.baseline.size(), hypotheses);
    else
      change.reason =
          fmt::format("identical processes differ by up to {} here; more processes tell more", percent(*change.noise));
  }
}

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

double log_change(std::span<const double> before, std::span<const double> after) {
  return difference(logarithms(before), logarithms(after));
}

std::optional<double> aa_noise(std::span<const double> before, std::span<const double> after, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<double> differences;
  for (const auto& side : {before, after})
    if (side.size() >= 2)
      add_splits(logarithms(side), scale_to(side.size(), before.size(), after.size()), random, differences);
  if (differences.empty()) return std::nullopt;
  return std::exp(quantile(differences, kNoiseLevel));
}

double smallest_p(std::size_t before, std::size_t after) {
  double ways = 1;
  for (std::size_t i = 1; i <= after; ++i) ways *= static_cast<double>(before + i) / static_cast<double>(i);
  return std::min(1.0, 2 / ways);
}

void measure_channel(const ChannelCompareOptions& options, ChannelChange& change) {
  if (change.baseline.empty() || change.test.empty()) {
    change.reason = fmt::format("the {} has no samples", change.baseline.empty() ? "baseline" : "test");
    return;
  }
  change.baseline_value = median(change.baseline);
  change.test_value = median(change.test);
  const double log_ratio = log_change(change.baseline, change.test);
  change.ratio = std::exp(log_ratio);
  change.slowness = std::exp(change.is_less_better ? log_ratio : -log_ratio);
  change.noise = aa_noise(change.baseline, change.test, options.seed);
  if (std::min(change.baseline.size(), change.test.size()) < 2) {
    change.reason = "one process on a side says nothing about the next; use --processes";
    change.noise.reset();
    return;
  }
  // Exact over all ways to deal processes to sides, up to 20 of them.
  change.p = mann_whitney(change.test, change.baseline).p;
}

std::size_t decide_channels(const ChannelCompareOptions& options, std::span<ChannelChange* const> changes) {
  std::vector<ChannelChange*> tested;
  std::vector<double> p;
  for (ChannelChange* change : changes)
    if (change->p) {
      tested.push_back(change);
      p.push_back(*change->p);
    }
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->adjusted_p = adjusted[i];
    decide(options, tested.size(), *tested[i]);
  }
  return tested.size();
}

ChannelComparison compare_channels(const ChannelRun& baseline, const std::string& baseline_name, const ChannelRun& test,
                                   const ChannelCompareOptions& options) {
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
    if (is.failures > 0) {  // whatever its times
      change.verdict = Verdict::slower;
      change.reason = fmt::format("failed: {}", is.failure);
    } else if (was.failures > 0) {
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
  std::vector<ChannelChange*> ours, controls;
  for (ChannelChange& change : comparison.changes) (change.is_ours ? ours : controls).push_back(&change);
  comparison.hypotheses = decide_channels(options, ours);
  decide_channels(options, controls);
  add_notes(baseline, test, comparison);
  const auto moved = std::count_if(controls.begin(), controls.end(), [](const ChannelChange* change) {
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
  const auto has = [&](Verdict verdict) {
    return std::any_of(comparison.changes.begin(), comparison.changes.end(), [&](const ChannelChange& change) {
      return change.verdict == verdict && (change.is_ours || !has_ours);
    });
  };
  if (has(Verdict::slower)) return 3;
  return is_strict && has(Verdict::ambiguous) ? 4 : 0;
}

}  // namespace weir
