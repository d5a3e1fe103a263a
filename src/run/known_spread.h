// What is known of how processes that run identical code differ: on which machine and device, and for which step. One
// process cannot tell, so `weir calibrate` measures it and keeps it in a document (weir.calibration/1). Knows the
// document; not where it is kept.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/comparison.h"
#include "run/load.h"

namespace weir {

inline constexpr std::size_t kFewestForSpread = 5;  // processes, or runs of a history

struct CalibratedStep {
  std::string measured;                        // when, ISO 8601
  std::map<std::string, std::string> machine;  // "device.name", "device.model", "environment.cpus", ...
  std::map<std::string, std::string> key;      // what was run, as ResultPoint::key
  std::optional<bool> is_host_bound;
  std::size_t processes = 0;
  double deviation = 0;  // of the logarithms of their medians
  double latency_ns = 0;
};

// Nothing if the point has fewer than kFewestForSpread processes with latencies above 0.
std::optional<CalibratedStep> calibrated_step(const ResultPoint& point, const std::string& measured);

// Adds `step`, and drops what was known of the same step on the same machine.
void remember(const CalibratedStep& step, std::vector<CalibratedStep>& steps);

// For a pair of points on a machine that was calibrated: of the same step if that was among those calibrated, otherwise
// the largest of all steps of its kind (bound by the host, or not). Nothing for another machine or device.
std::optional<Spread> find_spread(std::span<const CalibratedStep> steps, const ResultPoint& baseline,
                                  const ResultPoint& test);

// The spread of runs one after the other, by their neighbours: a few changes of the code among them hardly count.
// Nothing for fewer than kFewestForSpread medians.
std::optional<Spread> spread_of_runs(std::span<const double> medians, const std::string& source);

Json calibration_json(std::span<const CalibratedStep> steps);
// Empty where there is no such file. Rejects one that holds something else.
std::vector<CalibratedStep> load_calibration(const std::filesystem::path& path);

}  // namespace weir
