// Device time in nanoseconds, measured by events and related to the host's clock. Knows only events and the host clock.
#pragma once

#include <cstdint>
#include <vector>

#include "device/clock_map.h"
#include "device/gpu/error.h"

namespace weir {

// The driver returns the time between two events as a float of milliseconds: beyond 8 s it loses 1 us. So there is a
// new base event about every second, placed relative to the one before, and events are measured against a near one.
class DeviceClock {
 public:
  // Records on `stream`, which must be otherwise idle. Relates the device to the host's clock before it returns.
  DeviceClock(const GpuApi& api, GpuStream stream);

  // The base for events recorded from now on. Renews it if it is old; allocates only then.
  std::uint32_t base() noexcept;
  // Device time of an event that was recorded after base(); kNoTime if it was never recorded or has failed.
  std::int64_t time_of(GpuEvent event, std::uint32_t base) noexcept;

  // The first fix, taken by the constructor. Device times count from its host time.
  const ClockFix& first_fix() const noexcept { return first_; }
  // Takes another fix. Call while the device is idle.
  ClockFix take_fix();

 private:
  struct Base {
    GpuEventOwner event;
    std::int64_t device_ns = kNoTime;  // not known yet
    std::int64_t recorded_ns = 0;      // host time
  };
  std::int64_t device_time(std::uint32_t base) noexcept;
  bool add_base() noexcept;

  const GpuApi& api_;
  GpuStream stream_;
  std::vector<Base> bases_;
  ClockFix first_;
};

}  // namespace weir
