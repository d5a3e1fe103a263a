// Sizes of slots: four to each doubling, so that at most a fifth of a slot is wasted (small payloads aside).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::slot_bins {

inline constexpr std::size_t kSmallest = 256;
inline constexpr std::uint32_t kCount = 1 + 4 * 22;  // up to 1 GiB

// 256, 320, 384, 448, 512, 640 ... bytes: all of them multiples of a cache line.
constexpr std::size_t bytes_of(std::uint32_t bin) noexcept {
  if (bin == 0) return kSmallest;
  return (kSmallest / 4 << (bin - 1) / 4) * (5 + (bin - 1) % 4);
}
// The smallest that holds so many bytes; kCount or more where there is none.
constexpr std::uint32_t bin_of(std::size_t bytes) noexcept {
  const std::size_t last = (bytes <= kSmallest ? kSmallest : bytes) - 1;
  const auto bits = static_cast<std::uint32_t>(std::bit_width(last));   // 8 for the smallest
  const auto quarter = static_cast<std::uint32_t>(last >> (bits - 3));  // 4 to 7
  return bytes <= kSmallest ? 0 : 4 * (bits - 9) + quarter - 3;
}
static_assert(bin_of(0) == 0 && bin_of(256) == 0 && bin_of(257) == 1 && bin_of(512) == 4 && bin_of(513) == 5);
static_assert(bytes_of(1) == 320 && bytes_of(4) == 512 && bytes_of(5) == 640 && bytes_of(kCount - 1) == 1U << 30);
static_assert(bytes_of(bin_of(1 << 20)) == 1 << 20 && bytes_of(bin_of(1000)) == 1024);

}  // namespace weir::slot_bins
