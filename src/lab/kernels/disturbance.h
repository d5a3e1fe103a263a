// Detects what disturbed a kernel while a sample was taken. Knows counters and telemetry; the method decides what to do
// with the sample.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/surroundings.h"

namespace weir::bench {

// A clock this far below its median so far, or a core missing for this fraction of a sample, is a disturbance.
inline constexpr double kLowClock = 0.05;
inline constexpr double kMissingCore = 0.01;
// Telemetry and the slower counters are read after this much measured time: they cost up to a millisecond.
inline constexpr double kLookEveryNs = 5e6;

// Whether others had this thread's core for more than kMissingCore of `ns`, or at all if the duration is unknown.
bool lost_the_core(const HostCounters& before, const HostCounters& after, double ns);

class DisturbanceWatch {
 public:
  // `is_ours`: runs happen in this thread or are launched by it, so losing the core matters.
  DisturbanceWatch(package::ReadyKernel& kernel, const Surroundings& surroundings, bool is_ours);

  // Called around a sample, outside the timed part. after() returns what disturbed it, or an empty text.
  void before();
  std::string after(double sample_ns);
  bool is_due() const { return since_look_ns_ >= kLookEveryNs; }
  // Returns what disturbed, or may have disturbed, all samples since the last look; empty for nothing.
  std::string look();

  // {"p50", "low", "high", "readings"} of the device's clock; null if it reports none.
  Json clocks_block() const;

 private:
  package::ReadyKernel& kernel_;
  const Surroundings& surroundings_;
  bool is_ours_, has_clocks_ = true;
  HostCounters before_, looked_;
  double since_look_ns_ = 0;
  std::vector<double> clocks_mhz_;
};

// Counts disturbed samples that were thrown away or kept, and the reasons.
class DisturbanceTally {
 public:
  void redone(const std::string& reason, double sample_ns);
  void kept(const std::string& reason);
  void fine() { ++judged_; }
  std::size_t redone_count() const { return thrown_ns_.size(); }
  // More than four of five samples were disturbed, of at least ten: this is normal on this machine, and repeating would
  // not help.
  bool is_usual() const { return judged_ >= 10 && 5 * disturbed() > 4 * judged_; }
  // {"count", "redone", "kept", "reasons": {reason: count}, "samples_ns", "note"}
  Json block() const;

 private:
  std::size_t disturbed() const { return thrown_ns_.size() + kept_; }
  std::vector<double> thrown_ns_;
  std::size_t kept_ = 0, judged_ = 0;
  std::vector<std::pair<std::string, std::size_t>> reasons_;
  void count(const std::string& reason);
};

}  // namespace weir::bench
