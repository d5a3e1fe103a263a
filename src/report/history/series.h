// The points of a history in lines that may be drawn: all of one machine, one configuration and one metric, in the
// order of time, with the changes that were found. Never puts two machines into one.
#pragma once

#include <string>
#include <vector>

#include "measure/change_points.h"
#include "report/history/items.h"
#include "report/history/store.h"

namespace weir::history {

struct Series {
  Machine machine;
  std::map<std::string, std::string> key;
  std::string title;  // the workload and what tells this series from the others of it
  std::string metric, unit;
  bool is_less_better = true;
  std::vector<Point> points;  // that have a median of the metric
  std::vector<Point> failed;  // runs that failed, or whose output was wrong
  ChangeReport judged;        // of the points' medians
  std::vector<std::string> notes;

  const Measure& measure(const Point& point) const { return metric == "throughput" ? point.throughput : point.latency; }
  bool is_worse(const ChangePoint& change) const { return (change.ratio > 1) == is_less_better; }
  // The last change, where it is for the worse and among the last `within` points; nothing otherwise.
  const ChangePoint* late_regression(std::size_t within) const;
  // The newest run of all failed.
  bool has_failed_last() const;
};

// By machine, then by key. Rejects a metric that is neither "latency" nor "throughput", and an unknown machine.
std::vector<Series> make_series(Store& store, const HistorySelection& selection, const ChangeOptions& options = {});

}  // namespace weir::history
