// 64 bytes of JSON as bit masks, one bit per byte: NEON, SSE2 or plain C++. Knows characters, not the grammar.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::json_blocks {

inline constexpr std::size_t kBlock = 64;

// Bit i tells of byte i.
struct Masks {
  std::uint64_t quote = 0;      // "
  std::uint64_t backslash = 0;  // the character itself
  std::uint64_t open = 0;       // { [
  std::uint64_t close = 0;      // } ]
  std::uint64_t brace = 0;      // {
  std::uint64_t between = 0;    // what may stand beside a string: white space, control characters and , : { } [ ]
};

namespace detail {

#if defined(__aarch64__) && defined(__ARM_NEON)

[[gnu::always_inline]] inline std::uint64_t bits_of(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) noexcept {
  const uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t ab = vpaddq_u8(vandq_u8(a, weights), vandq_u8(b, weights));
  const uint8x16_t cd = vpaddq_u8(vandq_u8(c, weights), vandq_u8(d, weights));
  const uint8x16_t all = vpaddq_u8(ab, cd);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

template <class Test>
[[gnu::always_inline]] inline std::uint64_t bits_where(const uint8x16_t* parts, Test test) noexcept {
  return bits_of(test(parts[0]), test(parts[1]), test(parts[2]), test(parts[3]));
}

#elif defined(__SSE2__)

template <class Test>
[[gnu::always_inline]] inline std::uint64_t bits_where(const __m128i* parts, Test test) noexcept {
  std::uint64_t bits = 0;
  for (int i = 0; i < 4; ++i)
    bits |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(test(parts[i])))) << (16 * i);
  return bits;
}

#endif

}  // namespace detail

// Reads 64 bytes.
[[gnu::always_inline]] inline Masks masks_of(const char* at) noexcept {
  Masks masks;
#if defined(__aarch64__) && defined(__ARM_NEON)
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(at);
  const uint8x16_t parts[4] = {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)};
  const auto equal = [](char c) {
    return [c](uint8x16_t part) { return vceqq_u8(part, vdupq_n_u8(static_cast<std::uint8_t>(c))); };
  };
  // '[' and '{' differ in the bit 0x20 alone, as ']' and '}' do.
  const auto folded = [](char c) {
    return [c](uint8x16_t part) {
      return vceqq_u8(vorrq_u8(part, vdupq_n_u8(0x20)), vdupq_n_u8(static_cast<std::uint8_t>(c)));
    };
  };
  masks.quote = detail::bits_where(parts, equal('"'));
  masks.backslash = detail::bits_where(parts, equal('\\'));
  masks.open = detail::bits_where(parts, folded('{'));
  masks.close = detail::bits_where(parts, folded('}'));
  masks.brace = detail::bits_where(parts, equal('{'));
  masks.between = detail::bits_where(parts, [](uint8x16_t part) {
    const uint8x16_t marks = vorrq_u8(vceqq_u8(part, vdupq_n_u8(',')), vceqq_u8(part, vdupq_n_u8(':')));
    return vorrq_u8(marks, vcleq_u8(part, vdupq_n_u8(' ')));
  });
#elif defined(__SSE2__)
  __m128i parts[4];
  for (int i = 0; i < 4; ++i) parts[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16 * i));
  const auto equal = [](char c) { return [c](__m128i part) { return _mm_cmpeq_epi8(part, _mm_set1_epi8(c)); }; };
  const auto folded = [](char c) {
    return [c](__m128i part) { return _mm_cmpeq_epi8(_mm_or_si128(part, _mm_set1_epi8(0x20)), _mm_set1_epi8(c)); };
  };
  masks.quote = detail::bits_where(parts, equal('"'));
  masks.backslash = detail::bits_where(parts, equal('\\'));
  masks.open = detail::bits_where(parts, folded('{'));
  masks.close = detail::bits_where(parts, folded('}'));
  masks.brace = detail::bits_where(parts, equal('{'));
  masks.between = detail::bits_where(parts, [](__m128i part) {
    const __m128i marks =
        _mm_or_si128(_mm_cmpeq_epi8(part, _mm_set1_epi8(',')), _mm_cmpeq_epi8(part, _mm_set1_epi8(':')));
    return _mm_or_si128(marks, _mm_cmpeq_epi8(_mm_min_epu8(part, _mm_set1_epi8(' ')), part));
  });
#else
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto c = static_cast<unsigned char>(at[i]);
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (c == '"') masks.quote |= bit;
    if (c == '\\') masks.backslash |= bit;
    if ((c | 0x20U) == '{') masks.open |= bit;
    if ((c | 0x20U) == '}') masks.close |= bit;
    if (c == '{') masks.brace |= bit;
    if (c <= ' ' || c == ',' || c == ':') masks.between |= bit;
  }
#endif
  masks.between |= masks.open | masks.close;
  return masks;
}

// Bit i is the parity of bits 0..i.
inline std::uint64_t prefix_xor(std::uint64_t bits) noexcept {
  bits ^= bits << 1;
  bits ^= bits << 2;
  bits ^= bits << 4;
  bits ^= bits << 8;
  bits ^= bits << 16;
  bits ^= bits << 32;
  return bits;
}

// Bytes that a backslash before them escapes. `is_carried`: whether the first one is, and afterwards the next block's.
inline std::uint64_t escaped_of(std::uint64_t backslash, bool& is_carried) noexcept {
  const std::uint64_t carried = is_carried ? 1 : 0;
  if (backslash == 0) {
    is_carried = false;
    return carried;
  }
  // Runs of backslashes: every second one escapes. Carries of the addition run along those that start at odd places.
  constexpr std::uint64_t kEven = 0x5555555555555555U;
  backslash &= ~carried;
  const std::uint64_t follows = backslash << 1 | carried;
  const std::uint64_t odd_starts = backslash & ~kEven & ~follows;
  const std::uint64_t on_even = odd_starts + backslash;
  is_carried = on_even < backslash;
  return (kEven ^ on_even << 1) & follows;
}

// How many of the next bytes (16 or fewer) are white space or control characters; reads 16 bytes.
inline unsigned blank_run(const char* at) noexcept {
#if defined(__aarch64__) && defined(__ARM_NEON)
  const uint8x16_t part = vld1q_u8(reinterpret_cast<const std::uint8_t*>(at));
  const uint16x8_t solid = vreinterpretq_u16_u8(vcgtq_u8(part, vdupq_n_u8(' ')));
  // Four bits per byte.
  const std::uint64_t bits = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(solid, 4)), 0);
  return bits == 0 ? 16U : static_cast<unsigned>(__builtin_ctzll(bits)) / 4U;
#elif defined(__SSE2__)
  const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const auto blank =
      static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(part, _mm_set1_epi8(' ')), part)));
  return static_cast<unsigned>(__builtin_ctz(~blank));
#else
  unsigned run = 0;
  while (run < 16 && static_cast<unsigned char>(at[run]) <= ' ') ++run;
  return run;
#endif
}

// How many of the next bytes (16 or fewer) are neither a quote nor a backslash; reads 16 bytes.
inline unsigned text_run(const char* at) noexcept {
#if defined(__aarch64__) && defined(__ARM_NEON)
  const uint8x16_t part = vld1q_u8(reinterpret_cast<const std::uint8_t*>(at));
  const uint8x16_t stops = vorrq_u8(vceqq_u8(part, vdupq_n_u8('"')), vceqq_u8(part, vdupq_n_u8('\\')));
  const std::uint64_t bits = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(stops), 4)), 0);
  return bits == 0 ? 16U : static_cast<unsigned>(__builtin_ctzll(bits)) / 4U;
#elif defined(__SSE2__)
  const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const auto stops = static_cast<std::uint32_t>(_mm_movemask_epi8(
      _mm_or_si128(_mm_cmpeq_epi8(part, _mm_set1_epi8('"')), _mm_cmpeq_epi8(part, _mm_set1_epi8('\\')))));
  return stops == 0 ? 16U : static_cast<unsigned>(__builtin_ctz(stops));
#else
  unsigned run = 0;
  while (run < 16 && at[run] != '"' && at[run] != '\\') ++run;
  return run;
#endif
}

}  // namespace weir::json_blocks
