#include "report/history/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/error.h"

namespace weir::history {
namespace {

constexpr double kNormal95 = 1.96;

bool fits(const Point& point, const HistorySelection& selection) {
  return std::all_of(selection.key.begin(), selection.key.end(), [&](const auto& wanted) {
    const auto found = point.key.find(wanted.first);
    return found != point.key.end() && found->second == wanted.second;
  });
}

// "streams" with 8: "8 streams"; "param.size" with 512: "size=512"
std::string word_of(const std::string& name, const std::string& value) {
  if (name == "streams") return fmt::format("{} stream{}", value, value == "1" ? "" : "s");
  if (name == "submit" || name == "precision" || name == "backend") return value;
  for (const std::string_view start : {std::string_view("param."), std::string_view(kVariable)})
    if (name.starts_with(start)) return fmt::format("{}={}", name.substr(start.size()), value);
  return fmt::format("{}={}", name, value);
}

// The workload, its streams, and the settings that differ between its series.
void set_titles(std::vector<Series>& series) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> values;
  std::map<std::string, std::size_t> with;  // "workload\nname": how many series have it
  std::map<std::string, std::size_t> of;
  for (const Series& one : series) {
    const std::string& workload = one.key.at("workload");
    ++of[workload];
    for (const auto& [name, value] : one.key) {
      values[workload][name].insert(value);
      ++with[workload + "\n" + name];
    }
  }
  for (Series& one : series) {
    const std::string& workload = one.key.at("workload");
    one.title = workload;
    for (const auto& [name, value] : one.key)
      if (name != "workload" &&
          (name == "streams" || values[workload][name].size() > 1 || with[workload + "\n" + name] < of[workload]))
        one.title += ", " + word_of(name, value);
  }
}

void choose_metric(Series& series, const std::string& wanted, const std::vector<Point>& all) {
  const bool has_latency =
      std::any_of(all.begin(), all.end(), [](const Point& point) { return point.latency.median.has_value(); });
  series.metric = !wanted.empty() ? wanted : has_latency ? "latency" : "throughput";
  series.is_less_better = series.metric == "latency";
}

void fill(Series& series, const std::vector<Point>& all, ChangeDetector& detector) {
  std::size_t without = 0;
  std::string reason;
  for (const Point& point : all) {
    if (!point.failure.empty()) {
      series.failed.push_back(point);
    } else if (const Measure& measure = series.measure(point); measure.median) {
      series.points.push_back(point);
      series.unit = measure.unit;
    } else if (++without == 1) {
      reason = measure.reason;
    }
  }
  if (without > 0)
    series.notes.push_back(
        fmt::format("{} run{} without {}: {}", without, without == 1 ? "" : "s", series.metric, reason));
  if (!series.failed.empty())
    series.notes.push_back(fmt::format("{} failed run{} left out, the last: {}", series.failed.size(),
                                       series.failed.size() == 1 ? " is" : "s are", series.failed.back().failure));
  std::vector<double> medians, errors;
  for (const Point& point : series.points) {
    const Measure& measure = series.measure(point);
    medians.push_back(*measure.median);
    errors.push_back(measure.low && *measure.median > 0
                         ? (*measure.high - *measure.low) / (2 * kNormal95 * *measure.median)
                         : std::numeric_limits<double>::quiet_NaN());
  }
  series.judged = detector.judge(medians, errors);
  if (series.points.size() > kLongestSeries)
    series.notes.push_back(fmt::format("changes are looked for among the last {} runs", kLongestSeries));
}

}  // namespace

const ChangePoint* Series::late_regression(std::size_t within) const {
  if (judged.changes.empty()) return nullptr;
  const ChangePoint& last = judged.changes.back();
  return is_worse(last) && points.size() - last.index <= within ? &last : nullptr;
}

bool Series::has_failed_last() const {
  return !failed.empty() && (points.empty() || points.back().at < failed.back().at);
}

std::vector<Series> make_series(Store& store, const HistorySelection& selection, const ChangeOptions& options) {
  if (!selection.metric.empty() && selection.metric != "latency" && selection.metric != "throughput")
    reject_setting("metric", selection.metric, "neither latency nor throughput");
  PointFilter filter;
  filter.workload = selection.workload;
  filter.machine = selection.machine;
  std::map<std::string, std::map<std::map<std::string, std::string>, std::vector<Point>>> lines;  // by machine and key
  for (Point& point : store.points(filter))
    if (point.key.contains("workload") && fits(point, selection)) {
      std::vector<Point>& line = lines[point.machine][point.key];
      line.push_back(std::move(point));
    }
  std::map<std::string, Machine> machines;
  for (Machine& machine : store.machines(store.resolve_machine(selection.machine))) machines[machine.id] = machine;
  ChangeDetector detector(options);
  std::vector<Series> all;
  for (const auto& [machine, keys] : lines)
    for (const auto& [key, points] : keys) {
      Series series;
      series.machine = machines[machine];
      series.key = key;
      choose_metric(series, selection.metric, points);
      fill(series, points, detector);
      all.push_back(std::move(series));
    }
  set_titles(all);
  return all;
}

}  // namespace weir::history
