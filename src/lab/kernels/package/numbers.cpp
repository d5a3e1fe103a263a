#include "lab/kernels/package/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "weir/host.h"

namespace weir::package {
namespace {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// The largest Box-Muller value, from the smallest 1 - fraction, 2^-53: sqrt(106 ln 2) deviations.
constexpr double kLargestNormal = 8.6;

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

// In [0, 1), with 53 bits.
double fraction(std::uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

// Calls `function` with a value of the element type.
template <class Function>
auto with_type(Number number, Function&& function) {
  switch (number) {
    case Number::f64:
      return function(double{});
    case Number::f32:
      return function(float{});
    case Number::f16:
      return function(Half(0.0F));
    case Number::bf16:
      return function(Bfloat16(0.0F));
    case Number::fp8_e4m3:
      return function(Fp8E4m3(0.0F));
    case Number::fp8_e5m2:
      return function(Fp8E5m2(0.0F));
    case Number::i32:
      return function(std::int32_t{});
    case Number::u32:
      return function(std::uint32_t{});
    case Number::i64:
      return function(std::int64_t{});
    case Number::u8:
      break;
  }
  return function(std::uint8_t{});
}

// The next smaller number of the type, for a finite one.
template <class Type>
Type below(Type value) {
  if constexpr (std::is_integral_v<Type>) {
    return static_cast<Type>(value - 1);
  } else if constexpr (std::is_floating_point_v<Type>) {
    return std::nextafter(value, -std::numeric_limits<Type>::infinity());
  } else {
    using Bits = decltype(value.bits);
    constexpr auto kSign = static_cast<Bits>(1U << (8 * sizeof(Bits) - 1));
    if ((value.bits & (kSign - 1U)) == 0) {
      value.bits = kSign | 1U;
    } else {
      value.bits = static_cast<Bits>((value.bits & kSign) != 0 ? value.bits + 1 : value.bits - 1);
    }
    return value;
  }
}

// The range of integers that a type can hold, as doubles: [lowest, end).
template <class Type>
bool fits(double value) {
  const double end = std::ldexp(1.0, std::numeric_limits<Type>::digits);
  const double lowest = std::is_signed_v<Type> ? -end : 0;
  return value >= lowest && value < end;
}

}  // namespace

Number number_of(std::uint32_t type, Precision precision) {
  // tf32 is no precision of packages.
  constexpr Number kReal[] = {Number::f64, Number::f32,      Number::f16,     Number::bf16,
                              Number::f32, Number::fp8_e4m3, Number::fp8_e5m2};
  constexpr Number kOther[] = {Number::f64, Number::f32, Number::i32, Number::u32, Number::i64, Number::u8};
  return type == WEIR_REAL ? kReal[static_cast<int>(precision)] : kOther[type - WEIR_F64];
}

std::size_t size_of(Number number) {
  return with_type(number, [](auto zero) { return sizeof zero; });
}

bool is_whole(Number number) { return number >= Number::i32; }

namespace {

// The key of a buffer's stream of random numbers.
std::uint64_t key_of(std::uint32_t buffer_index, std::uint64_t seed) {
  return mixed(mixed(seed + kGolden) ^ (kGolden * (std::uint64_t{buffer_index} + 1)));
}

double draw_from(std::uint64_t key, const WeirBuffer& buffer, std::uint64_t index) {
  const auto random = [&](std::uint64_t counter) { return mixed(key + kGolden * (counter + 1)); };
  switch (buffer.fill) {
    case WEIR_NORMAL: {
      // Box-Muller; 1 - fraction is never 0.
      const double radius = std::sqrt(-2 * std::log(1 - fraction(random(2 * index))));
      return buffer.low + buffer.high * radius * std::cos(2 * std::numbers::pi * fraction(random(2 * index + 1)));
    }
    case WEIR_WHOLE: {
      // The upper half of the product: as uniform as the range allows, without a division.
      const auto range = static_cast<std::uint64_t>(buffer.high - buffer.low);
      __extension__ using Wide = unsigned __int128;
      return buffer.low + static_cast<double>(static_cast<std::uint64_t>((Wide{random(index)} * range) >> 64));
    }
    default: {
      const double value = buffer.low + (buffer.high - buffer.low) * fraction(random(index));
      return value < buffer.high ? value : buffer.low;
    }
  }
}

}  // namespace

double draw(const WeirBuffer& buffer, std::uint32_t buffer_index, std::uint64_t seed, std::uint64_t index) {
  return draw_from(key_of(buffer_index, seed), buffer, index);
}

std::size_t encode(Number number, std::span<const double> values, std::byte* to) {
  return with_type(number, [&](auto zero) {
    using Type = decltype(zero);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_integral_v<Type>) {
        const double whole = std::nearbyint(values[i]);
        if (!fits<Type>(whole)) return i;
        const auto value = static_cast<Type>(whole);
        std::memcpy(to + i * sizeof(Type), &value, sizeof value);
      } else {
        const auto value = static_cast<Type>(values[i]);
        std::memcpy(to + i * sizeof(Type), &value, sizeof value);
      }
    }
    return values.size();
  });
}

void decode(Number number, const std::byte* from, std::span<double> values) {
  with_type(number, [&](auto zero) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto value = zero;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      values[i] = static_cast<double>(value);
    }
  });
}

void draw_all(const WeirBuffer& buffer, std::uint32_t buffer_index, std::uint64_t seed, Number number, std::byte* to) {
  with_type(number, [&](auto zero) {
    using Type = decltype(zero);
    const std::uint64_t key = key_of(buffer_index, seed);
    const bool is_open = buffer.fill != WEIR_NORMAL && buffer.low < buffer.high;
    for (std::uint64_t i = 0; i < buffer.count; ++i) {
      const double drawn = draw_from(key, buffer, i);
      // Integers from a range of reals are rounded down; otherwise the ends would be half as likely as the rest.
      auto value = static_cast<Type>(is_whole(number) && buffer.fill == WEIR_UNIFORM ? std::floor(drawn)
                                     : is_whole(number)                              ? std::nearbyint(drawn)
                                                                                     : drawn);
      if (is_open && static_cast<double>(value) >= buffer.high) value = below(value);
      std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
  });
}

std::string trouble_with_fill(const WeirBuffer& buffer, Number number) {
  if (buffer.fill > WEIR_OWN) return fmt::format("has fill {}, which this version does not know", buffer.fill);
  if (buffer.fill == WEIR_OWN) return {};
  if (!std::isfinite(buffer.low) || !std::isfinite(buffer.high)) return "is filled within limits that are not numbers";
  const auto holds = [number](double value) {
    // fp8 has no number for what is too large: it takes the largest, which is far from the one that was meant.
    if (number == Number::fp8_e4m3) return std::fabs(value) <= 448;
    if (number == Number::fp8_e5m2) return std::fabs(value) <= 57344;
    return with_type(number, [value](auto zero) { return std::isfinite(static_cast<double>(decltype(zero)(value))); });
  };
  if (buffer.fill == WEIR_NORMAL) {
    if (buffer.high < 0) return fmt::format("has the deviation {:g}, which is negative", buffer.high);
    if (is_whole(number)) return "is of whole numbers and cannot be filled as WEIR_NORMAL";
    const double farthest = kLargestNormal * buffer.high;
    if (holds(buffer.low - farthest) && holds(buffer.low + farthest)) return {};
    return fmt::format("is drawn with mean {:g} and deviation {:g}, which its type cannot hold", buffer.low,
                       buffer.high);
  }
  if (buffer.low > buffer.high || (buffer.fill == WEIR_WHOLE && buffer.low == buffer.high))
    return fmt::format("is filled from {:g} up to {:g}: there is nothing between", buffer.low, buffer.high);
  constexpr double kMax = 0x1p53;
  if (buffer.fill == WEIR_WHOLE && (std::floor(buffer.low) != buffer.low || std::floor(buffer.high) != buffer.high ||
                                    std::abs(buffer.low) > kMax || std::abs(buffer.high) > kMax))
    return fmt::format("is filled as WEIR_WHOLE from {:g} up to {:g}: limits must be whole, and at most 2^53",
                       buffer.low, buffer.high);
  const bool does_fit = with_type(number, [&](auto zero) {
    using Type = decltype(zero);
    if constexpr (std::is_integral_v<Type>) {
      // The end is excluded: 0 up to 256 are all bytes.
      return fits<Type>(std::floor(buffer.low)) &&
             fits<Type>(std::max(std::floor(buffer.low), std::ceil(buffer.high) - 1));
    } else {
      return holds(buffer.low) && holds(buffer.high) && std::isfinite(buffer.high - buffer.low);
    }
  });
  return does_fit ? std::string()
                  : fmt::format("is filled from {:g} up to {:g}, which its type cannot hold", buffer.low, buffer.high);
}

}  // namespace weir::package
