// What came between a kernel and the machine while a sample was taken. Knows counters and telemetry; the method decides
// what becomes of the sample.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/surroundings.h"

namespace weir::bench {

// A clock this far below its median so far, or a core missing for this part of a sample, is a disturbance.
inline constexpr double kLowClock = 0.05;
inline constexpr double kMissingCore = 0.01;
// Telemetry and the slower counters are read after so much measured time: they cost up to a millisecond.
inline constexpr double kLookEveryNs = 5e6;

// Whether others had this thread's core for more than kMissingCore of `ns`; or at all, where it is not known for how
// long.
bool lost_the_core(const HostCounters& before, const HostCounters& after, double ns);

class DisturbanceWatch {
 public:
  // `is_ours`: runs happen in this thread or are launched by it, so what is taken from it matters.
  DisturbanceWatch(package::ReadyKernel& kernel, const Surroundings& surroundings, bool is_ours);

  // Around a sample, outside of what it times. after() says what disturbed it, empty for nothing.
  void before();
  std::string after(double sample_ns);
  // Whether look() is due.
  bool is_due() const { return since_look_ns_ >= kLookEveryNs; }
  // What disturbed all samples since the last look, or may have; empty for nothing.
  std::string look();

  // {"median", "low", "high", "readings"} of the device's clock; null where it tells none.
  Json clocks_block() const;

 private:
  package::ReadyKernel& kernel_;
  const Surroundings& surroundings_;
  bool is_ours_, tells_clocks_ = true;
  HostCounters before_, looked_;
  double since_look_ns_ = 0;
  std::vector<double> clocks_mhz_;
};

// What was thrown away, what was kept though disturbed, and why.
class DisturbanceTally {
 public:
  void redone(const std::string& reason, double sample_ns);
  void kept(const std::string& reason);
  void fine() { ++judged_; }
  std::size_t redone_count() const { return thrown_ns_.size(); }
  // More than four of five were, of ten at least: that is how this machine is, and taking them again would not help.
  bool is_usual() const { return judged_ >= 10 && 5 * disturbed() > 4 * judged_; }
  // {"count", "redone", "kept", "reasons": {words: count}, "samples_ms", "note"}
  Json block() const;

 private:
  std::size_t disturbed() const { return thrown_ns_.size() + kept_; }
  std::vector<double> thrown_ns_;
  std::size_t kept_ = 0, judged_ = 0;
  std::vector<std::pair<std::string, std::size_t>> reasons_;
  void count(const std::string& reason);
};

}  // namespace weir::bench
