// How a block on the host takes time as if it computed.
#pragma once

#include <time.h>

#include <cstdint>

#include "base/clock.h"

namespace weir {

// Waits until the duration has passed and returns the time. A worker stands for a part of a GPU, and there may be a
// hundred of them on two cores: long waits sleep and leave the core to others. Short waits are below the scheduler's
// precision.
inline std::int64_t busy_wait(std::int64_t started_ns, std::int64_t duration_ns) noexcept {
  constexpr std::int64_t kWorthSleep = 200'000;
  if (duration_ns >= kWorthSleep) {
    const std::int64_t until_ns = started_ns + duration_ns;
    const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  std::int64_t ended_ns = started_ns;
  do {
    ended_ns = now_ns();
  } while (ended_ns - started_ns < duration_ns);
  return ended_ns;
}

}  // namespace weir
