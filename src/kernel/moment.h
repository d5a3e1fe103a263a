// When a probe kernel ran: two moments in memory that host and device share while it runs. One writes, the other reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir {

inline constexpr int kMomentElements = 4;  // i32 elements of one record: started and ended, 64 bits each

// Nanoseconds on the device's clock, from an arbitrary origin; 0 if it has not happened.
struct Moment {
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;
};

// `at` is a record of kMomentElements, aligned to 8 bytes.
inline void write_started(std::int32_t* at, std::int64_t ns) noexcept {
  std::atomic_ref(*reinterpret_cast<std::int64_t*>(at)).store(ns, std::memory_order_release);  // pairs with read_moment
}
inline void write_ended(std::int32_t* at, std::int64_t ns) noexcept {
  std::atomic_ref(*reinterpret_cast<std::int64_t*>(at + 2)).store(ns, std::memory_order_release);  // as above
}
inline Moment read_moment(std::int32_t* at) noexcept {
  const std::int64_t ended = std::atomic_ref(*reinterpret_cast<std::int64_t*>(at + 2)).load(std::memory_order_acquire);
  return {std::atomic_ref(*reinterpret_cast<std::int64_t*>(at)).load(std::memory_order_acquire), ended};
}

}  // namespace weir
