// Finds the line ends among 64 bytes, as a bit mask. Knows vector units, not lines.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::amd {

// Sets bit i if text[i] == '\n'. Reads all 64 bytes.
inline std::uint64_t newline_mask(const char* text) {
#if defined(__aarch64__)
  const uint8x16_t newline = vdupq_n_u8('\n');
  const uint8x16_t bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto at = [&](int offset) {
    return vandq_u8(vceqq_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(text) + offset), newline), bits);
  };
  // Adds neighbors until each byte holds the bits of eight.
  const uint8x16_t low = vpaddq_u8(at(0), at(16)), high = vpaddq_u8(at(32), at(48));
  const uint8x16_t sum = vpaddq_u8(low, high);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sum, sum)), 0);
#elif defined(__SSE2__)
  const __m128i newline = _mm_set1_epi8('\n');
  const auto at = [&](int offset) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + offset));
    return static_cast<std::uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, newline))));
  };
  return at(0) | at(16) << 16 | at(32) << 32 | at(48) << 48;
#else
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= static_cast<std::uint64_t>(text[i] == '\n') << i;
  return mask;
#endif
}

}  // namespace weir::amd
