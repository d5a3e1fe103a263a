// The points of a history as lines that can be drawn: all of one machine, one configuration and one metric, in order of
// time, with the changes that were found. Never puts two machines into one.
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
  std::string title;  // the workload and what distinguishes this series from its others
  std::string metric, unit;
  bool is_less_better = true;
  std::vector<Point> points;  // those with a median of the metric
  std::vector<Point> failed;  // runs that failed, or produced wrong output
  ChangeReport judged;        // for the medians of the points
  std::vector<std::string> notes;

  const Measure& measure(const Point& point) const { return metric == "throughput" ? point.throughput : point.latency; }
  bool is_worse(const ChangePoint& change) const { return (change.ratio > 1) == is_less_better; }
  // The last change, if it is a regression and among the last `within` points; null otherwise.
  const ChangePoint* late_regression(std::size_t within) const;
  // Whether the newest of all runs failed.
  bool has_failed_last() const;
};

// By machine, then by key. Rejects a metric that is neither "latency" nor "throughput", and an unknown machine.
std::vector<Series> make_series(Store& store, const HistorySelection& selection, const ChangeOptions& options = {});

}  // namespace weir::history
