// The host clock of every measurement. Knows nanoseconds; never formats.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace weir {

// Monotonic host time. About 20-40 ns through the vDSO; never a system call on Linux.
inline std::int64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Wall-clock time as ISO 8601 in UTC, for results: 2026-01-31T12:00:00Z.
inline std::string wall_time() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace weir
