// For host parts of kernel packages that are written in C++17 or later: the numbers of each precision as types, and
// typed access to parameters and buffers. Adds nothing to the interface in kernel.h; a package may do without it.
//
//   int run(void*, WeirStream* stream) {
//     return weir::with_precision(stream->precision, [&](auto zero) {
//       using Real = decltype(zero);       // double, float, weir::Half, weir::Bfloat16, weir::Fp8E4m3 or weir::Fp8E5m2
//       using Wide = weir::Wide<Real>;     // what to add up in: double for double, else float
//       const Real* in = weir::buffer<Real>(stream, 0);
//       ...
#ifndef WEIR_HOST_H
#define WEIR_HOST_H

#include "weir/kernel.h"

#if WEIR_HOST_CODE
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weir {

namespace bits {

inline std::uint64_t whole_of(double value) {
  std::uint64_t whole = 0;
  std::memcpy(&whole, &value, sizeof whole);
  return whole;
}

// The nearest number of `exponent` + `mantissa` bits, ties to even, for a positive one of these bits; beyond the
// largest exponent it just goes on. In integers, so that no flag of a package (-ffast-math) changes it; from double at
// once, because rounding twice is off by one now and then.
inline std::uint64_t rounded(std::uint64_t size, int mantissa, int exponent) {
  const int power = static_cast<int>(size >> 52) - 1023;
  const int least = 2 - (1 << (exponent - 1));  // the exponent of the smallest normal number
  const int shift = 52 - mantissa + (power < least ? least - power : 0);
  if (power == -1023 || shift > 53) return 0;
  const std::uint64_t digits = (size & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1} << 52);
  const std::uint64_t rest = digits & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  std::uint64_t kept = digits >> shift;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // The leading digit adds the last one to the exponent; where rounding carried, it adds one more.
  return kept + (power > least ? static_cast<std::uint64_t>(power - least) << mantissa : 0);
}

constexpr std::uint64_t kInfinity = std::uint64_t{0x7ff} << 52, kSign = std::uint64_t{1} << 63;

// The nearest number of 1 + `exponent` + `mantissa` bits.
inline std::uint16_t narrow(double value, int mantissa, int exponent) {
  const std::uint64_t whole = whole_of(value), size = whole & ~kSign;
  const auto sign = static_cast<std::uint16_t>((whole >> 63) << 15);
  const std::uint32_t infinity = ((1U << exponent) - 1) << mantissa;
  if (size > kInfinity) return static_cast<std::uint16_t>(sign | infinity | (1U << (mantissa - 1)));
  const std::uint64_t result = size == kInfinity ? infinity : rounded(size, mantissa, exponent);
  return static_cast<std::uint16_t>(sign | (result < infinity ? result : infinity));
}

// One byte of 1 + `exponent` + `mantissa` bits; what is larger than `largest`, also infinity, becomes `largest`.
inline std::uint8_t narrow_to_byte(double value, int mantissa, int exponent, std::uint8_t largest) {
  const std::uint64_t whole = whole_of(value), size = whole & ~kSign;
  const auto sign = static_cast<std::uint8_t>((whole >> 63) << 7);
  if (size > kInfinity) return static_cast<std::uint8_t>(sign | 0x7fU);
  const std::uint64_t result = rounded(size, mantissa, exponent);
  return static_cast<std::uint8_t>(sign | (result < largest ? result : largest));
}

inline float float_of(std::uint32_t whole) {
  float value = 0;
  std::memcpy(&value, &whole, sizeof value);
  return value;
}

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t size = half & 0x7fffU;
  if (size >= 0x7c00U) return float_of(sign | 0x7f800000U | ((size & 0x3ffU) << 13));
  if (size >= 0x400U) return float_of(sign | ((size << 13) + 0x38000000U));
  const float value = static_cast<float>(size) * 0x1p-24F;
  return sign != 0 ? -value : value;
}

inline float fp8_e4m3_to_float(std::uint8_t byte) {
  const std::uint32_t sign = (byte & 0x80U) << 24, size = byte & 0x7fU;
  if (size == 0x7fU) return float_of(sign | 0x7fc00000U);
  if (size >= 8U) return float_of(sign | ((size << 20) + 0x3c000000U));
  const float value = static_cast<float>(size) * 0x1p-9F;
  return sign != 0 ? -value : value;
}

inline std::uint16_t bfloat16_from_float(float value) {
  std::uint32_t whole = 0;
  std::memcpy(&whole, &value, sizeof whole);
  if ((whole & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((whole >> 16) | 0x40U);
  return static_cast<std::uint16_t>((whole + 0x7fffU + ((whole >> 16) & 1U)) >> 16);
}

// Where the processor converts by itself, loops are as fast as the format allows.
#if defined(__ARM_FP16_FORMAT_IEEE) && !defined(__CUDACC__)
#define WEIR_NATIVE_HALF __fp16
#elif defined(__F16C__) && defined(__FLT16_MAX__) && !defined(__CUDACC__)
#define WEIR_NATIVE_HALF _Float16
#endif

}  // namespace bits

// IEEE 754 binary16, for storage: arithmetic is that of float, and assigning rounds to nearest even.
struct Half {
  std::uint16_t bits;

  Half() = default;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Half(Number value) {
#ifdef WEIR_NATIVE_HALF
    const auto native = static_cast<WEIR_NATIVE_HALF>(value);
    std::memcpy(&bits, &native, sizeof bits);
#else
    bits = bits::narrow(static_cast<double>(value), 10, 5);
#endif
  }
  operator float() const {
#ifdef WEIR_NATIVE_HALF
    WEIR_NATIVE_HALF native;
    std::memcpy(&native, &bits, sizeof bits);
    return static_cast<float>(native);
#else
    return bits::half_to_float(bits);
#endif
  }
};

// The upper half of a float, for storage.
struct Bfloat16 {
  std::uint16_t bits;

  Bfloat16() = default;
  Bfloat16(float value) : bits(bits::bfloat16_from_float(value)) {}
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Bfloat16(Number value) : bits(bits::narrow(static_cast<double>(value), 7, 8)) {}
  operator float() const { return bits::float_of(static_cast<std::uint32_t>(bits) << 16); }
};

// 8 bits, for storage: 4 of exponent and 3 of mantissa, up to 448. There is no infinity: what is larger becomes 448.
struct Fp8E4m3 {
  std::uint8_t bits;

  Fp8E4m3() = default;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Fp8E4m3(Number value) : bits(bits::narrow_to_byte(static_cast<double>(value), 3, 4, 0x7e)) {}
  operator float() const { return bits::fp8_e4m3_to_float(bits); }
};

// 8 bits, for storage: the upper half of binary16, up to 57344. What is larger becomes 57344.
struct Fp8E5m2 {
  std::uint8_t bits;

  Fp8E5m2() = default;
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Fp8E5m2(Number value) : bits(bits::narrow_to_byte(static_cast<double>(value), 2, 5, 0x7b)) {}
  operator float() const { return bits::half_to_float(static_cast<std::uint16_t>(bits << 8)); }
};

static_assert(sizeof(Fp8E4m3) == 1 && sizeof(Fp8E5m2) == 1);
static_assert(sizeof(Half) == 2 && sizeof(Bfloat16) == 2 && std::is_trivially_copyable_v<Half>);

// What sums of a type are kept in.
template <class Real>
using Wide = std::conditional_t<std::is_same_v<Real, double>, double, float>;

// Calls `function` with a zero of the type that WEIR_FP64 ... WEIR_FP8_E5M2 stands for.
template <class Function>
decltype(auto) with_precision(std::uint32_t precision, Function&& function) {
  switch (precision) {
    case WEIR_FP64:
      return function(double{});
    case WEIR_FP16:
      return function(Half(0.0F));
    case WEIR_BF16:
      return function(Bfloat16(0.0F));
    case WEIR_FP8_E4M3:
      return function(Fp8E4m3(0.0F));
    case WEIR_FP8_E5M2:
      return function(Fp8E5m2(0.0F));
    default:  // setup() is never asked for a precision that the table does not name
      return function(float{});
  }
}

// A buffer by its index as declared. Element types: Real for WEIR_REAL, double, float, int32_t, ... for the others.
template <class Element>
Element* buffer(const WeirStream* stream, std::uint32_t index) {
  return static_cast<Element*>(stream->buffers[index]);
}

// A value of a parameter by name, `otherwise` where the problem has none of that name.
inline double parameter(const WeirProblem* problem, const char* name, std::uint32_t index = 0, double otherwise = 0) {
  for (std::uint32_t i = 0; i < problem->parameter_count; ++i) {
    const WeirParameter& candidate = problem->parameters[i];
    if (std::strcmp(candidate.name, name) == 0) return index < candidate.count ? candidate.values[index] : otherwise;
  }
  return otherwise;
}

}  // namespace weir
#endif  // WEIR_HOST_CODE
#endif
