// What a kernel's clock is on the host's. A kernel that waits for the host's flag says when it saw it: not before the
// host set it, and not after the host saw the answer. The closest of many such pairs bounds the difference. Knows two
// clocks; no experiment.
#pragma once

#include <cstdint>
#include <span>

namespace weir::preempt {

// One exchange: the host set the flag, the kernel saw it, the host saw that it had.
struct Exchange {
  std::int64_t set_ns = 0;     // host
  std::int64_t kernel_ns = 0;  // kernel
  std::int64_t seen_ns = 0;    // host
};

// A moment on both clocks; the host's is wrong by at most error_ns.
struct ClockFix {
  std::int64_t kernel_ns = 0;
  std::int64_t host_ns = 0;
  std::int64_t error_ns = 0;
};
// The closest exchange; there has to be one.
ClockFix closest(std::span<const Exchange> exchanges);

// Along the line through a fix before and one after: clocks drift apart by some ppm, which in three seconds is more
// than a launch takes.
class ClockLine {
 public:
  ClockLine() = default;  // both clocks are one
  ClockLine(const ClockFix& before, const ClockFix& after);
  std::int64_t host_ns(std::int64_t kernel_ns) const;
  // Of moments between both fixes, as far as the drift is even.
  std::int64_t error_ns() const { return error_ns_; }

 private:
  ClockFix before_;
  double slope_ = 0;  // host's ns per kernel's, beyond 1
  std::int64_t error_ns_ = 0;
};

}  // namespace weir::preempt
