// Keeps the result code of the first failed call on the hot path; cold code turns it into an Error. Knows no vendor.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace weir {

// The first error of the hot path. Several threads may set it; the first wins.
class ErrorLatch {
 public:
  static constexpr std::uint32_t kNoCommand = std::numeric_limits<std::uint32_t>::max();
  struct Latched {
    int result = 0;
    std::uint32_t command = kNoCommand;
  };

  void set(int result, std::uint32_t command) noexcept {
    std::uint64_t expected = 0;
    // Relaxed: nothing but the value is published, and take() runs after the submitting threads were joined or awaited.
    state_.compare_exchange_strong(expected, static_cast<std::uint64_t>(command) << 32 | static_cast<unsigned>(result),
                                   std::memory_order_relaxed);
  }
  bool is_set() const noexcept { return state_.load(std::memory_order_relaxed) != 0; }
  // Returns and clears the latched error.
  Latched take() noexcept {
    const std::uint64_t state = state_.exchange(0, std::memory_order_relaxed);
    return {static_cast<int>(state & 0xffffffffu), static_cast<std::uint32_t>(state >> 32)};
  }

 private:
  std::atomic<std::uint64_t> state_{0};
};

}  // namespace weir
