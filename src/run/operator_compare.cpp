#include "run/operator_compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/named_values.h"
#include "trace/analyse/iterations.h"
#include "trace/analyse/slice.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

using OperatorKey = std::pair<std::string, std::string>;  // name and shapes

struct OperatorWork {
  double commands = 0, ns = 0;
  std::map<std::string, double> kernels;  // time by name
};

// Sums over all devices (and steps); `parts` is how many of these there are.
struct OperatorWorks {
  std::map<OperatorKey, OperatorWork> operators;
  double outside_ns = 0, wall_ns = 0, parts = 0;
};

std::string text_of(const Timeline& timeline, std::uint32_t name) {
  return name < timeline.names.size() ? timeline.names[name] : std::string();
}

std::vector<std::uint16_t> devices_with_work(const Timeline& timeline) {
  std::set<std::uint16_t> devices;
  for (const Span& span : timeline.spans)
    if (is_device_work(span))
      devices.insert(span.stream < timeline.streams.size() ? timeline.streams[span.stream].device : 0);
  return {devices.begin(), devices.end()};
}

std::vector<TraceRange> steps_of(const Timeline& timeline, std::uint16_t device) {
  return timeline.devices.empty() ? std::vector<TraceRange>{}
                                  : iteration_ranges(timeline, timeline.devices[device].process);
}

bool has_steps(const Timeline& timeline) {
  const std::vector<std::uint16_t> devices = devices_with_work(timeline);
  return std::all_of(devices.begin(), devices.end(),
                     [&](std::uint16_t device) { return !steps_of(timeline, device).empty(); });
}

void add_device(const Timeline& whole, std::uint16_t device, bool is_per_step, OperatorWorks& to) {
  const Timeline part = slice(whole, device);
  const std::vector<std::uint32_t> order = device_work_by_start(part);
  const std::vector<TraceRange> steps = is_per_step ? steps_of(whole, device) : std::vector<TraceRange>{};
  const Iterations placed = place_in_iterations(part, order, steps);
  if (is_per_step) {
    to.parts += static_cast<double>(steps.size());
    for (const TraceRange& step : steps) to.wall_ns += length_between(step.started_ns, step.ended_ns);
  } else {
    std::int64_t last_ns = INT64_MIN;
    for (const std::uint32_t index : order) last_ns = std::max(last_ns, part.spans[index].ended_ns);
    to.parts += 1;
    to.wall_ns += length_between(part.spans[order.front()].started_ns, last_ns);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (is_per_step && placed.of[i] == kNoIteration) continue;
    const Span& span = part.spans[order[i]];
    const double ns = length_between(span.started_ns, span.ended_ns);
    const std::uint32_t number = span.call < part.calls.size() ? part.calls[span.call].operation : kNoOperation;
    if (number >= part.operations.size()) {
      to.outside_ns += ns;
      continue;
    }
    const Operation& operation = part.operations[number];
    const std::string name = operation.name != kNoName ? text_of(whole, operation.name)
                                                       : "(" + text_of(whole, part.calls[span.call].name) + ")";
    OperatorWork& work = to.operators[{name, text_of(whole, operation.shapes)}];
    ++work.commands;
    work.ns += ns;
    work.kernels[text_of(whole, span.name)] += ns;
  }
}

OperatorWorks works_of(const Timeline& timeline, bool is_per_step) {
  OperatorWorks works;
  for (const std::uint16_t device : devices_with_work(timeline)) add_device(timeline, device, is_per_step, works);
  return works;
}

std::int64_t per_part(double ns, const OperatorWorks& works) {
  return works.parts > 0 ? std::llround(ns / works.parts) : 0;
}

OperatorSide side_of(const OperatorWork* work, const OperatorWorks& works) {
  if (work == nullptr) return {};
  const auto most = std::max_element(work->kernels.begin(), work->kernels.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return {work->commands / works.parts, per_part(work->ns, works), most->first};
}

// Whether one ran kernels that the other did not.
bool has_moved(const OperatorWork& before, const OperatorWork& after) {
  return before.kernels.size() != after.kernels.size() ||
         !std::equal(before.kernels.begin(), before.kernels.end(), after.kernels.begin(),
                     [](const auto& a, const auto& b) { return a.first == b.first; });
}

OperatorFate fate_of(const OperatorWork* before, const OperatorWork* after, const OperatorChange& change,
                     double threshold) {
  if (before == nullptr) return OperatorFate::fresh;
  if (after == nullptr) return OperatorFate::gone;
  if (has_moved(*before, *after)) return OperatorFate::moved;
  const auto old_ns = static_cast<double>(change.baseline.ns), new_ns = static_cast<double>(change.test.ns);
  if (new_ns > old_ns * (1 + threshold)) return OperatorFate::slower;
  return old_ns > new_ns * (1 + threshold) ? OperatorFate::faster : OperatorFate::same;
}

Json operator_side_json(const OperatorSide& side) {
  return WEIR_NAMED(side.commands, named("total_ns", side.ns), text_or_null(side.kernel));
}

}  // namespace

const char* to_string(OperatorFate fate) noexcept {
  constexpr std::array<const char*, 6> kNames = {"new", "gone", "moved", "slower", "faster", "same"};
  return kNames[static_cast<std::size_t>(fate)];
}

OperatorComparison compare_operators(const Timeline& baseline, const Timeline& test, double threshold) {
  OperatorComparison found;
  if (!baseline.has_operations || !test.has_operations) {
    found.reason = "operators were not read (--operators reads those of PyTorch's traces)";
    return found;
  }
  found.is_per_step = has_steps(baseline) && has_steps(test);
  const OperatorWorks before = works_of(baseline, found.is_per_step), after = works_of(test, found.is_per_step);
  if (before.operators.empty() && after.operators.empty()) {
    found = {};
    found.reason = "no command of either trace was submitted within an operator that the source names";
    return found;
  }
  found.baseline_ns = per_part(before.wall_ns, before);
  found.test_ns = per_part(after.wall_ns, after);
  std::set<OperatorKey> keys;
  for (const OperatorWorks* works : {&before, &after})
    for (const auto& [key, work] : works->operators) keys.insert(key);
  for (const OperatorKey& key : keys) {
    const auto work_in = [&](const OperatorWorks& works) {
      const auto at = works.operators.find(key);
      return at == works.operators.end() ? nullptr : &at->second;
    };
    const OperatorWork *old_work = work_in(before), *new_work = work_in(after);
    OperatorChange change{key.first, key.second, side_of(old_work, before), side_of(new_work, after)};
    change.fate = fate_of(old_work, new_work, change, threshold);
    found.changes.push_back(std::move(change));
  }
  std::stable_sort(found.changes.begin(), found.changes.end(), [](const OperatorChange& a, const OperatorChange& b) {
    return std::abs(a.difference_ns()) > std::abs(b.difference_ns());
  });
  found.outside_ns = per_part(after.outside_ns, after) - per_part(before.outside_ns, before);
  found.rest_ns = found.test_ns - found.baseline_ns - found.outside_ns;
  for (std::size_t i = 0; i < found.changes.size(); ++i) {
    const std::int64_t difference_ns = found.changes[i].difference_ns();
    found.rest_ns -= difference_ns;
    if (i < kMaxOperatorChanges) continue;
    ++found.left_out;
    found.left_out_ns += difference_ns;
  }
  if (found.left_out > 0) found.changes.resize(kMaxOperatorChanges);
  return found;
}

Json operator_comparison_json(const OperatorComparison& comparison) {
  if (!comparison.reason.empty()) return Json();
  Json json = WEIR_NAMED(comparison.is_per_step, comparison.baseline_ns, comparison.test_ns,
                         named("difference_ns", comparison.test_ns - comparison.baseline_ns));
  json["changes"] = json_list(comparison.changes, [](const OperatorChange& change) -> Json {
    return {{"name", change.name},
            {"shapes", text_or_null(change.shapes)},
            {"change", to_string(change.fate)},
            {"baseline", operator_side_json(change.baseline)},
            {"test", operator_side_json(change.test)},
            {"difference_ns", change.difference_ns()}};
  });
  json.update(WEIR_NAMED(comparison.left_out, comparison.left_out_ns, comparison.outside_ns, comparison.rest_ns));
  return json;
}

}  // namespace weir
