#include "run/trace_pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <vector>

#include "measure/statistics.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/slice.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::size_t kFewestStarts = 6;  // five repetitions, as for every verdict
// Repetitions must contain this share of a device's time: a kernel that recurs only while the program starts says
// nothing about the rest.
constexpr double kLeastCovered = 0.75;

using NameNumbers = std::unordered_map<std::string, std::uint32_t>;  // numbers that both traces share
using Starts = std::vector<std::int64_t>;

struct WorkItem {
  std::uint32_t name = 0;
  std::int64_t started_ns = 0;
  double took_ns = 0;
  bool is_kernel = false;
};

struct DeviceWork {
  std::vector<WorkItem> commands;       // by start
  std::vector<double> before_ns = {0};  // by command, and at the end: device time of those before it
  Starts iterations;                    // when each marked iteration began on the device

  std::size_t first_from(std::int64_t time_ns) const {
    return static_cast<std::size_t>(
        std::partition_point(commands.begin(), commands.end(),
                             [&](const WorkItem& one) { return one.started_ns < time_ns; }) -
        commands.begin());
  }
};

using TraceWork = std::vector<DeviceWork>;  // devices with commands

TraceWork trace_work(const Timeline& timeline, NameNumbers& names) {
  const std::size_t devices = std::max<std::size_t>(1, timeline.devices.size());
  TraceWork work(devices);
  std::vector<std::uint32_t> shared(timeline.names.size());
  for (std::size_t i = 0; i < shared.size(); ++i)
    shared[i] = names.try_emplace(timeline.names[i], static_cast<std::uint32_t>(names.size())).first->second;
  const std::uint32_t unnamed = names.try_emplace("", static_cast<std::uint32_t>(names.size())).first->second;
  for (const std::uint32_t i : device_work_by_start(timeline)) {
    const Span& span = timeline.spans[i];
    DeviceWork& device = work[span.stream < timeline.streams.size() ? timeline.streams[span.stream].device : 0];
    device.commands.push_back({span.name < shared.size() ? shared[span.name] : unnamed, span.started_ns,
                               static_cast<double>(distance_ns(span.started_ns, span.ended_ns)),
                               span.kind == SpanKind::kernel});
    device.before_ns.push_back(device.before_ns.back() + device.commands.back().took_ns);
  }
  for (std::size_t device = 0; device < devices; ++device) {
    std::vector<TraceRange> ranges;
    if (!timeline.devices.empty()) ranges = iteration_ranges(timeline, timeline.devices[device].process);
    for (const IterationTimes& iteration :
         breakdown(slice(timeline, static_cast<std::uint16_t>(device)), ranges).iterations)
      if (iteration.times) work[device].iterations.push_back(iteration.times->first_ns);
    std::sort(work[device].iterations.begin(), work[device].iterations.end());
  }
  std::erase_if(work, [](const DeviceWork& device) { return device.commands.empty(); });
  return work;
}

bool has_iterations(const TraceWork& work) {
  return std::any_of(work.begin(), work.end(), [](const DeviceWork& device) { return device.iterations.size() >= 2; });
}

// By name: when its kernels started, by device. Copies may run far ahead of the work that needs them, and collectives
// wait for other ranks.
std::unordered_map<std::uint32_t, std::vector<Starts>> starts_by_name(const TraceWork& work) {
  std::unordered_map<std::uint32_t, std::vector<Starts>> starts;
  for (std::size_t device = 0; device < work.size(); ++device)
    for (const WorkItem& command : work[device].commands) {
      if (!command.is_kernel) continue;
      std::vector<Starts>& own = starts[command.name];
      own.resize(work.size());
      own[device].push_back(command.started_ns);
    }
  return starts;
}

// Distances of starts over their mean; empty where the name does not recur throughout the trace.
std::optional<double> unsteadiness(const TraceWork& work, const std::vector<Starts>& starts) {
  double worst = 0;
  bool is_found = false;
  for (std::size_t device = 0; device < work.size(); ++device) {
    const Starts& own = starts[device];
    if (own.empty()) continue;  // another role, as in a pipeline
    if (own.size() < kFewestStarts || own.back() <= own.front()) return std::nullopt;
    const DeviceWork& all = work[device];
    const double covered = all.before_ns[all.first_from(own.back())] - all.before_ns[all.first_from(own.front())];
    if (covered < kLeastCovered * all.before_ns.back()) return std::nullopt;
    double squares = 0;
    const double typical =
        static_cast<double>(distance_ns(own.front(), own.back())) / static_cast<double>(own.size() - 1);
    for (std::size_t i = 1; i < own.size(); ++i)
      squares += std::pow(static_cast<double>(distance_ns(own[i - 1], own[i])) / typical - 1, 2);
    worst = std::max(worst, std::sqrt(squares / static_cast<double>(own.size() - 1)));
    is_found = true;
  }
  return is_found ? std::optional(worst) : std::nullopt;
}

struct Repetitions {
  std::vector<double> times_ns;  // mean over devices
  std::vector<double> counts;    // by name: commands per repetition, mean over devices
};

Repetitions repetitions(const TraceWork& work, const std::vector<Starts>& starts, std::size_t names) {
  std::size_t count = SIZE_MAX;
  double devices = 0;
  for (const Starts& own : starts)
    if (own.size() >= 2) {
      count = std::min(count, own.size() - 1);
      ++devices;
    }
  Repetitions made{std::vector<double>(devices > 0 ? count : 0), std::vector<double>(names)};
  for (std::size_t device = 0; device < work.size(); ++device) {
    const Starts& own = starts[device];
    if (own.size() < 2) continue;
    for (std::size_t i = 0; i < count; ++i)
      made.times_ns[i] += static_cast<double>(distance_ns(own[i], own[i + 1])) / devices;
    for (const WorkItem& command : work[device].commands)
      if (command.started_ns >= own.front() && command.started_ns < own[count])
        made.counts[command.name] += 1 / devices / static_cast<double>(count);
  }
  return made;
}

// By name, over both traces.
std::vector<double> mean_durations(const TraceWork& before, const TraceWork& after, std::size_t names) {
  std::vector<double> sums(names), counts(names);
  for (const TraceWork* work : {&before, &after})
    for (const DeviceWork& device : *work)
      for (const WorkItem& command : device.commands) {
        sums[command.name] += command.took_ns;
        ++counts[command.name];
      }
  for (std::size_t i = 0; i < names; ++i) sums[i] = counts[i] > 0 ? sums[i] / counts[i] : 0;
  return sums;
}

std::vector<Starts> marked_starts(const TraceWork& work) {
  std::vector<Starts> starts;
  for (const DeviceWork& device : work) starts.push_back(device.iterations);
  return starts;
}

}  // namespace

TracePace measure_pace(const Timeline& baseline, const Timeline& test, const CompareOptions& options) {
  NameNumbers names;
  const TraceWork before = trace_work(baseline, names), after = trace_work(test, names);
  const std::size_t count = names.size();
  TracePace pace;
  pace.times.metric = "pace";
  pace.times.unit = "ns";
  std::vector<Starts> baseline_starts, test_starts;
  pace.is_marked = has_iterations(before) && has_iterations(after);
  if (pace.is_marked) {
    baseline_starts = marked_starts(before);
    test_starts = marked_starts(after);
  } else {
    const auto of_baseline = starts_by_name(before), of_test = starts_by_name(after);
    double best = 0;
    for (const auto& [name, i] : names) {
      const auto own = of_baseline.find(i), others = of_test.find(i);
      if (own == of_baseline.end() || others == of_test.end()) continue;
      const auto one = unsteadiness(before, own->second), other = unsteadiness(after, others->second);
      if (!one || !other) continue;
      const double worse = std::max(*one, *other);
      // Which of two equals is first in the map must not matter.
      if (!baseline_starts.empty() && (worse > best || (worse == best && name > pace.kernel))) continue;
      best = worse;
      pace.kernel = name;
      baseline_starts = own->second;
      test_starts = others->second;
    }
  }
  if (baseline_starts.empty()) {
    pace.times.reason =
        "no kernel recurs at least six times throughout both traces, and neither marks iterations: a single pass says "
        "nothing about the next";
    return pace;
  }
  const Repetitions one = repetitions(before, baseline_starts, count), other = repetitions(after, test_starts, count);
  const std::vector<double> weights = mean_durations(before, after, count);
  double all = 0, differing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pace.baseline_commands += one.counts[i];
    pace.test_commands += other.counts[i];
    all += weights[i] * std::max(one.counts[i], other.counts[i]);
    differing += weights[i] * std::fabs(one.counts[i] - other.counts[i]);
  }
  pace.other_work = all > 0 ? differing / all : 0;
  const double mean_before = mean(one.times_ns), mean_after = mean(other.times_ns);
  if (mean_before > 0) pace.mean_ratio = mean_after / mean_before;
  measure_samples(one.times_ns, other.times_ns, options, pace.times);
  return pace;
}

}  // namespace weir
