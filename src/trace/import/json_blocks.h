// 64 bytes of JSON as bit masks, one bit per byte: uses compiler vectors, with NEON, SSE2 or plain C++ to extract the
// bits. Knows characters, not the grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::json_blocks {

inline constexpr std::size_t kBlock = 64;

// Bit i describes byte i.
struct Masks {
  std::uint64_t quote = 0;      // "
  std::uint64_t backslash = 0;  // the character itself
  std::uint64_t open = 0;       // { [
  std::uint64_t close = 0;      // } ]
  std::uint64_t brace = 0;      // {
  std::uint64_t between = 0;    // characters allowed next to a string: white space, control characters and , : { } [ ]
};

namespace detail {

using Part [[gnu::vector_size(16)]] = unsigned char;
using Flags [[gnu::vector_size(16)]] = signed char;  // result of a comparison: 0 or all bits of a byte

[[gnu::always_inline]] inline Part load(const char* at) noexcept {
  Part part;
  std::memcpy(&part, at, sizeof(part));
  return part;
}

// Bits of 64 bytes; and the index of the first set byte of 16, 16 where none is set.
#if defined(__aarch64__) && defined(__ARM_NEON)

[[gnu::always_inline]] inline std::uint64_t bits_of(const Flags (&flags)[4]) noexcept {
  const uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto weighed = [&](int i) { return vandq_u8(reinterpret_cast<uint8x16_t>(flags[i]), weights); };
  const uint8x16_t all = vpaddq_u8(vpaddq_u8(weighed(0), weighed(1)), vpaddq_u8(weighed(2), weighed(3)));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}
[[gnu::always_inline]] inline unsigned first_of(Flags flags) noexcept {
  // Four bits per byte.
  const std::uint64_t bits = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(reinterpret_cast<uint16x8_t>(flags), 4)), 0);
  return bits == 0 ? 16U : static_cast<unsigned>(__builtin_ctzll(bits)) / 4U;
}

#elif defined(__SSE2__)

[[gnu::always_inline]] inline std::uint32_t bits_of(Flags flags) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(reinterpret_cast<__m128i>(flags)));
}
[[gnu::always_inline]] inline std::uint64_t bits_of(const Flags (&flags)[4]) noexcept {
  std::uint64_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= std::uint64_t{bits_of(flags[i])} << (16 * i);
  return bits;
}
[[gnu::always_inline]] inline unsigned first_of(Flags flags) noexcept {
  return static_cast<unsigned>(__builtin_ctz(bits_of(flags) | 1U << 16));
}

#else

inline std::uint64_t bits_of(const Flags (&flags)[4]) noexcept {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < kBlock; ++i)
    if (flags[i / 16][i % 16] != 0) bits |= std::uint64_t{1} << i;
  return bits;
}
inline unsigned first_of(Flags flags) noexcept {
  unsigned i = 0;
  while (i < 16 && flags[i] == 0) ++i;
  return i;
}

#endif

template <class Test>
[[gnu::always_inline]] inline std::uint64_t bits_where(const Part (&parts)[4], Test test) noexcept {
  return bits_of({test(parts[0]), test(parts[1]), test(parts[2]), test(parts[3])});
}

}  // namespace detail

// Reads 64 bytes.
[[gnu::always_inline]] inline Masks masks_of(const char* at) noexcept {
  using detail::bits_where, detail::load, detail::Part;
  const Part parts[4] = {load(at), load(at + 16), load(at + 32), load(at + 48)};
  Masks masks;
  masks.quote = bits_where(parts, [](Part part) { return part == '"'; });
  masks.backslash = bits_where(parts, [](Part part) { return part == '\\'; });
  // '[' and '{' differ only in the bit 0x20, as do ']' and '}'.
  masks.open = bits_where(parts, [](Part part) { return (part | 0x20) == '{'; });
  masks.close = bits_where(parts, [](Part part) { return (part | 0x20) == '}'; });
  masks.brace = bits_where(parts, [](Part part) { return part == '{'; });
  masks.between = bits_where(parts, [](Part part) { return (part <= ' ') | (part == ',') | (part == ':'); });
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

// Bytes that are escaped by a backslash before them. `is_carried` says whether the first one is, and is updated for the
// next block.
inline std::uint64_t escaped_of(std::uint64_t backslash, bool& is_carried) noexcept {
  const std::uint64_t carried = is_carried ? 1 : 0;
  if (backslash == 0) {
    is_carried = false;
    return carried;
  }
  // In runs of backslashes every second one escapes. Carries of the addition propagate along runs that start at odd
  // positions.
  constexpr std::uint64_t kEven = 0x5555555555555555U;
  backslash &= ~carried;
  const std::uint64_t follows = backslash << 1 | carried;
  const std::uint64_t odd_starts = backslash & ~kEven & ~follows;
  const std::uint64_t on_even = odd_starts + backslash;
  is_carried = on_even < backslash;
  return (kEven ^ on_even << 1) & follows;
}

// How many of the next bytes (16 or fewer) are white space or control characters; reads 16 bytes.
inline unsigned blank_run(const char* at) noexcept { return detail::first_of(detail::load(at) > ' '); }

// How many of the next bytes (16 or fewer) are neither a quote nor a backslash; reads 16 bytes.
inline unsigned text_run(const char* at) noexcept {
  const detail::Part part = detail::load(at);
  return detail::first_of((part == '"') | (part == '\\'));
}

}  // namespace weir::json_blocks
