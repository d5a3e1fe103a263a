// Converts device times to the host's clock. Knows nothing of how either clock is read.
#pragma once

#include <cstdint>

namespace weir {

// One moment on both clocks; the host's time is known to +-error_ns.
struct ClockFix {
  std::int64_t device_ns = 0;
  std::int64_t host_ns = 0;
  double error_ns = 0;
};

// Maps device times to the host's clock along the line through two fixes, because the clocks drift apart by some ppm.
class ClockMap {
 public:
  ClockMap(const ClockFix& first, const ClockFix& second) noexcept;
  std::int64_t host_time(std::int64_t device_ns) const noexcept;
  double error_ns() const noexcept { return error_ns_; }

 private:
  ClockFix first_;
  double slope_ = 1;
  double error_ns_ = 0;
};

}  // namespace weir
