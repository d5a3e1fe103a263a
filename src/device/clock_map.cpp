#include "device/clock_map.h"

#include <algorithm>
#include <cmath>

namespace weir {

ClockMap::ClockMap(const ClockFix& first, const ClockFix& second) noexcept
    : first_(first), error_ns_(std::max(first.error_ns, second.error_ns)) {
  const double device = static_cast<double>(second.device_ns - first.device_ns);
  const double host = static_cast<double>(second.host_ns - first.host_ns);
  // Over a short time the errors of the fixes would look like drift; no two clocks drift by more than 200 ppm.
  if (device <= 0) return;
  slope_ = std::clamp(host / device, 1 - 2e-4, 1 + 2e-4);
}

std::int64_t ClockMap::host_time(std::int64_t device_ns) const noexcept {
  return first_.host_ns + std::llround(static_cast<double>(device_ns - first_.device_ns) * slope_);
}

}  // namespace weir
