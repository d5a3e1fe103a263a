// Runs of weir channel made up from numbers.
#pragma once

#include <string>
#include <vector>

#include "lab/channels/channel_results.h"

namespace weir::testing {

// One benchmark whose process i has these samples.
inline ChannelResult channel_result(const std::string& id, const std::vector<std::vector<double>>& processes,
                                    channel_bench::Unit unit = channel_bench::Unit::ns_per_operation) {
  ChannelResult result;
  const std::size_t first = id.find('/'), last = id.rfind('/');
  result.group = id.substr(0, first);
  result.name = id.substr(first + 1, last - first - 1);
  result.contestant = id.substr(last + 1);
  result.is_ours = result.contestant != "floor" && !result.contestant.starts_with("boost");
  result.unit = unit;
  result.what = "made up";
  for (const std::vector<double>& samples : processes) {
    ChannelMeasurement& measurement = result.measurements.emplace_back();
    measurement.process = static_cast<int>(result.measurements.size()) - 1;
    measurement.found.samples = samples;
    measurement.found.sent = measurement.found.received = samples.size();
  }
  return result;
}

inline ChannelRun channel_run(std::vector<ChannelResult> results) {
  ChannelRun run;
  run.created = "2026-11-15T12:00:00Z";
  run.settings.conditions.cores = {0, 1};
  run.settings.processes = 5;
  run.environment = {{"variables", Json::object()}};
  run.results = std::move(results);
  return run;
}

}  // namespace weir::testing
