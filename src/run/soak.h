// A soak: one step for a given time, with bounded memory, and what changed meanwhile: latency, temperature, clocks.
// Knows windows and samples; draws nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/bootstrap.h"
#include "run/passes.h"

namespace weir {

inline constexpr int kSoakWindows = 30;
inline constexpr std::size_t kMostSoakSamples = 65'536;

// One iteration, in nanoseconds; `begun_ns` counts from the soak's begin.
struct SoakSample {
  double begun_ns = 0, latency_ns = 0, interval_ns = 0, submit_ns = 0;
};

// Keeps a bounded number of samples, spread evenly over all that were added: one of every `stride()` consecutive ones,
// chosen at random, so that a period in the work cannot hide. The stride doubles whenever there is no more room.
// Allocates only when it is constructed.
class SoakSamples {
 public:
  SoakSamples(std::size_t most, std::uint64_t seed);
  void add(const SoakSample& sample) noexcept;
  std::span<const SoakSample> kept() const { return kept_; }
  std::uint64_t stride() const { return stride_; }

 private:
  std::size_t most_;
  SplitMix random_;
  std::vector<SoakSample> kept_;
  SoakSample chosen_;  // of the samples since the last kept one
  std::uint64_t stride_ = 1, in_block_ = 0;
};

struct SoakWindow {
  double started_ns = 0, ended_ns = 0;  // since the soak's begin
  std::uint64_t iterations = 0;         // all of them, not only those that were kept
  std::optional<double> p50_ns, p95_ns;
  Telemetry telemetry;  // at its end
};

struct Soak {
  std::int64_t asked_ns = 0;
  double elapsed_ns = 0;
  std::uint64_t iterations = 0, stride = 1;
  std::vector<double> begun_ns;  // of each sample of the pass
  std::vector<SoakWindow> windows;
};

// As run_timed_pass(), for request.duration_ns of real time (also where the device's is virtual). Only per_iteration.
TimedPass run_soak_pass(Device& device, Session& session, Submitter& submitter, const RunRequest& request,
                        const RunControl& control, SessionWatch* watch, Soak& soak);

// How much a quantity changes over the span of `times`, by the median slope between all pairs of points (Theil and
// Sen), with its 95 % interval (Sen, 1968). Single outliers do not move it. Empty for fewer than eight points.
struct RobustChange {
  double value = 0;
  Interval interval;
};
std::optional<RobustChange> robust_change(std::span<const double> times, std::span<const double> values);

// Fills the windows' quantiles from the pass, whose latencies may be those of the slowest rank, and adds metrics.soak
// with its alarms, which are also warnings.
void add_soak(Result& result, const TimedPass& pass, Soak& soak);

}  // namespace weir
