// Relates a kernel's clock to the host's. A kernel that waits for the host's flag records when it saw it: not before
// the host set it, and not after the host saw the answer. The closest of many such pairs bounds the difference. Knows
// two clocks; no experiment.
#pragma once

#include <cstdint>
#include <span>

namespace weir::preempt {

// One exchange: the host set the flag, the kernel saw it, the host saw the answer.
struct Exchange {
  std::int64_t set_ns = 0;     // host's clock
  std::int64_t kernel_ns = 0;  // kernel's clock
  std::int64_t seen_ns = 0;    // host's clock
};

// One moment on both clocks; the host's time is wrong by at most error_ns.
struct KernelClockFix {
  std::int64_t kernel_ns = 0;
  std::int64_t host_ns = 0;
  std::int64_t error_ns = 0;
};
// The closest exchange; there must be at least one.
KernelClockFix closest(std::span<const Exchange> exchanges);

// A line through one fix before and one after: clocks drift apart by some ppm, which in three seconds is more than the
// time of a launch.
class ClockLine {
 public:
  ClockLine() = default;  // both clocks are the same
  ClockLine(const KernelClockFix& before, const KernelClockFix& after);
  std::int64_t host_ns(std::int64_t kernel_ns) const;
  // For moments between both fixes, if the drift is uniform.
  std::int64_t error_ns() const { return error_ns_; }

 private:
  KernelClockFix before_;
  double slope_ = 0;  // host's ns per kernel's ns, minus 1
  std::int64_t error_ns_ = 0;
};

}  // namespace weir::preempt
