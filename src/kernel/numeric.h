// Element types, with conversions that round to nearest even. Knows no kernel.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "kernel/precision.h"

namespace weir {

enum class ElementType : std::uint8_t { f32, f16, bf16, i32 };

constexpr std::uint64_t size_of(ElementType type) {
  return type == ElementType::f32 || type == ElementType::i32 ? 4 : 2;
}
constexpr ElementType storage_of(Precision precision) {
  if (precision == Precision::fp16) return ElementType::f16;
  if (precision == Precision::bf16 || is_fp8(precision)) return ElementType::bf16;
  return ElementType::f32;
}
constexpr std::string_view name_of(ElementType type) {
  constexpr std::string_view kNames[] = {"f32", "f16", "bf16", "i32"};
  return kNames[static_cast<int>(type)];
}
// Storage alone: include/weir/host.h has weir::Half and weir::Bfloat16, with which kernels of packages compute.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

inline float to_float(float value) { return value; }
inline float to_float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
inline float to_float(F16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // Shifting the half's exponent into place and scaling by 2^112 turns its subnormals into normal floats as well.
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f));
}

template <class T>
T from_float(float value);
template <>
inline float from_float<float>(float value) {
  return value;
}
template <>
inline Bf16 from_float<Bf16>(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};  // NaN stays NaN
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
template <>
inline F16 from_float<F16>(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // rounds to 65520 or more
  if (magnitude < 0x38800000u) {
    // Subnormal half: adding 0.5 makes the float unit round it to a multiple of 2^-24.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u))};
  }
  const std::uint32_t even = magnitude >> 13 & 1u;
  return {static_cast<std::uint16_t>(sign | (magnitude - 0x38000000u + 0xfffu + even) >> 13)};
}

// Calls `body` with a null pointer to an integer type of that size, for bodies that move bits.
template <class Body>
void with_bits(ElementType type, Body&& body) {
  if (size_of(type) == 4) return body(static_cast<std::uint32_t*>(nullptr));
  body(static_cast<std::uint16_t*>(nullptr));
}

// Calls `body` with a null pointer to the C++ type that stores a floating element type.
template <class Body>
decltype(auto) with_float_type(ElementType type, Body&& body) {
  if (type == ElementType::f16) return body(static_cast<F16*>(nullptr));
  if (type == ElementType::bf16) return body(static_cast<Bf16*>(nullptr));
  return body(static_cast<float*>(nullptr));
}

}  // namespace weir
