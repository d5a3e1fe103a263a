#include "lab/preempt/kernel_clock.h"

#include <algorithm>
#include <cmath>

namespace weir::preempt {

KernelClockFix closest(std::span<const Exchange> exchanges) {
  const auto width = [](const Exchange& one) { return one.seen_ns - one.set_ns; };
  const Exchange& best = *std::min_element(exchanges.begin(), exchanges.end(),
                                           [&](const Exchange& a, const Exchange& b) { return width(a) < width(b); });
  return {best.kernel_ns, best.set_ns + width(best) / 2, (width(best) + 1) / 2};
}

ClockLine::ClockLine(const KernelClockFix& before, const KernelClockFix& after)
    : before_(before), error_ns_(std::max(before.error_ns, after.error_ns)) {
  const std::int64_t kernel_ns = after.kernel_ns - before.kernel_ns, host_ns = after.host_ns - before.host_ns;
  if (kernel_ns > 0) slope_ = static_cast<double>(host_ns - kernel_ns) / static_cast<double>(kernel_ns);
}

std::int64_t ClockLine::host_ns(std::int64_t kernel_ns) const {
  const std::int64_t since_ns = kernel_ns - before_.kernel_ns;
  return before_.host_ns + since_ns + std::llround(slope_ * static_cast<double>(since_ns));
}

}  // namespace weir::preempt
