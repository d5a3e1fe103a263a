#include "lab/channels/channel_calibration.h"

#include <algorithm>
#include <map>
#include <set>

#include "measure/statistics.h"

namespace weir {
namespace {

struct Series {
  std::string group;
  bool is_less_better = true;
  std::map<int, double> median_of_process;
};

struct Counts {
  std::size_t benchmarks = 0;
  double single_alarms = 0, singles = 0;
  double plain_alarms = 0, our_alarms = 0, sides = 0;
};

double slowness(const Series& series, double before, double after) {
  return series.is_less_better ? after / before : before / after;
}

std::vector<Series> series_of(const ChannelRun& run) {
  std::vector<Series> all;
  for (const ChannelResult& result : run.results) {
    Series series{result.group, channel_bench::is_less_better(result.unit), {}};
    for (const ChannelMeasurement& measurement : result.measurements)
      if (measurement.found.failure.empty() && !measurement.found.samples.empty())
        series.median_of_process[measurement.process] = median(measurement.found.samples);
    if (series.median_of_process.size() >= 4) all.push_back(std::move(series));
  }
  return all;
}

// The verdicts on all benchmarks with these processes as the baseline and all others as the test.
std::vector<ChannelChange> judge_deal(const std::vector<Series>& all, const std::set<int>& baseline,
                                      const CompareOptions& options) {
  std::vector<ChannelChange> changes(all.size());
  std::vector<Change*> pointers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    changes[i].is_less_better = all[i].is_less_better;
    for (const auto& [process, value] : all[i].median_of_process)
      (baseline.contains(process) ? changes[i].baseline : changes[i].test).push_back(value);
    measure_channel(options, changes[i]);
    pointers.push_back(&changes[i]);
  }
  decide(pointers, options);
  return changes;
}

CalibrationRow row_of(const std::string& group, const Counts& counts) {
  const auto part = [](double some, double all) { return all > 0 ? some / all : 0; };
  return {group, counts.benchmarks, part(counts.single_alarms, counts.singles), part(counts.plain_alarms, counts.sides),
          part(counts.our_alarms, counts.sides)};
}

}  // namespace

std::optional<ChannelCalibration> calibrate_channels(const ChannelRun& run, int deals, const CompareOptions& options) {
  const std::vector<Series> all = series_of(run);
  if (all.empty()) return std::nullopt;
  std::set<int> seen;
  std::vector<std::string> groups;
  for (const Series& series : all) {
    if (std::find(groups.begin(), groups.end(), series.group) == groups.end()) groups.push_back(series.group);
    for (const auto& [process, value] : series.median_of_process) seen.insert(process);
  }
  std::vector<int> processes(seen.begin(), seen.end());
  const std::size_t half = processes.size() / 2;
  std::map<std::string, Counts> counts;
  for (const Series& series : all) {
    Counts& count = counts[series.group];
    ++count.benchmarks;
    for (const auto& [first, before] : series.median_of_process)
      for (const auto& [second, after] : series.median_of_process) {
        if (first == second) continue;
        ++count.singles;
        if (slowness(series, before, after) > 1 + kPlainThreshold) ++count.single_alarms;
      }
  }

  ChannelCalibration calibration;
  calibration.processes = processes.size();
  calibration.deals = deals;
  calibration.can_alarm = smallest_p(half, processes.size() - half) < options.significance;
  const std::vector<ChannelChange> by_time =
      judge_deal(all, {processes.begin(), processes.begin() + static_cast<std::ptrdiff_t>(half)}, options);
  for (const ChannelChange& change : by_time) {
    if (change.verdict == Verdict::slower) ++calibration.drifted_slower;
    if (change.verdict == Verdict::faster) ++calibration.drifted_faster;
  }
  SplitMix random(options.bootstrap.seed);
  int deals_with_alarm = 0;
  for (int deal = 0; deal < deals; ++deal) {
    for (std::size_t i = 0; i < half; ++i)
      std::swap(processes[i], processes[i + random.below(static_cast<std::uint32_t>(processes.size() - i))]);
    const std::vector<ChannelChange> changes =
        judge_deal(all, {processes.begin(), processes.begin() + static_cast<std::ptrdiff_t>(half)}, options);
    bool has_alarm = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!changes[i].baseline_median || !changes[i].test_median) continue;
      Counts& count = counts[all[i].group];
      ++count.sides;
      if (slowness(all[i], *changes[i].baseline_median, *changes[i].test_median) > 1 + kPlainThreshold)
        ++count.plain_alarms;
      if (changes[i].verdict == Verdict::slower) ++count.our_alarms;
      has_alarm = has_alarm || changes[i].verdict == Verdict::slower;
    }
    if (has_alarm) ++deals_with_alarm;
  }
  calibration.deals_with_alarm = deals > 0 ? static_cast<double>(deals_with_alarm) / deals : 0;
  Counts sum;
  for (const std::string& group : groups) {
    const Counts& count = counts[group];
    calibration.groups.push_back(row_of(group, count));
    sum.benchmarks += count.benchmarks;
    sum.single_alarms += count.single_alarms;
    sum.singles += count.singles;
    sum.plain_alarms += count.plain_alarms;
    sum.our_alarms += count.our_alarms;
    sum.sides += count.sides;
  }
  calibration.all = row_of("", sum);
  return calibration;
}

}  // namespace weir
