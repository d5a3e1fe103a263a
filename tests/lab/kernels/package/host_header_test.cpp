// include/weir/host.h: numbers of one and two bytes as host parts of packages see them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "weir/host.h"

namespace weir::testing {
namespace {

// The value of bits by the definition of the format.
double value_of(std::uint16_t bits, int mantissa, int exponent) {
  const int field = (bits >> mantissa) & ((1 << exponent) - 1);
  const int digits = bits & ((1 << mantissa) - 1);
  const int bias = (1 << (exponent - 1)) - 1;
  const double size = field == 0 ? std::ldexp(digits, 1 - bias - mantissa)
                                 : std::ldexp(digits + (1 << mantissa), field - bias - mantissa);
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class Type>
void holds_for_every_number(int mantissa, int exponent) {
  const std::uint16_t infinity = static_cast<std::uint16_t>(((1 << exponent) - 1) << mantissa);
  for (std::uint16_t i = 0; i < infinity; ++i) {
    const double value = value_of(i, mantissa, exponent);
    ASSERT_EQ(static_cast<double>(static_cast<float>(std::bit_cast<Type>(i))), value) << i;
    ASSERT_EQ(Type(value).bits, i);
    ASSERT_EQ(Type(-value).bits, i | 0x8000);
    ASSERT_EQ(Type(static_cast<float>(value)).bits, i);
    ASSERT_EQ(bits::narrow(value, mantissa, exponent), i);
    if (i + 1 == infinity) break;
    // Half way to the next one: the even one; a hair beyond or before: the nearer one.
    const double next = value_of(static_cast<std::uint16_t>(i + 1), mantissa, exponent);
    const double middle = (value + next) / 2;
    const int even = i % 2 == 0 ? i : i + 1;
    ASSERT_EQ(Type(middle).bits, even) << i;
    ASSERT_EQ(Type(static_cast<float>(middle)).bits, even) << i;
    ASSERT_EQ(bits::narrow(middle, mantissa, exponent), even) << i;
    ASSERT_EQ(bits::narrow(std::nextafter(middle, 1e300), mantissa, exponent), i + 1) << i;
    ASSERT_EQ(bits::narrow(std::nextafter(middle, 0), mantissa, exponent), i) << i;
    // In one step: through float this would be the tie again.
    ASSERT_EQ(Type(std::nextafter(middle, 1e300)).bits, i + 1) << i;
  }
  ASSERT_EQ(Type(std::numeric_limits<double>::infinity()).bits, infinity);
  ASSERT_EQ(bits::narrow(-std::numeric_limits<double>::infinity(), mantissa, exponent), infinity | 0x8000);
  ASSERT_EQ(Type(1e300).bits, infinity);
  ASSERT_EQ(Type(1e-300).bits, 0);
  ASSERT_EQ(bits::narrow(5e-324, mantissa, exponent), 0);
  ASSERT_TRUE(std::isnan(static_cast<float>(Type(std::nan("")))));
  ASSERT_TRUE(std::isnan(static_cast<float>(std::bit_cast<Type>(bits::narrow(std::nan(""), mantissa, exponent)))));
  ASSERT_TRUE(std::isinf(static_cast<float>(std::bit_cast<Type>(infinity))));
}

TEST(HostHeader, half_rounds_to_the_nearest_even) {
  holds_for_every_number<Half>(10, 5);
  EXPECT_EQ(Half(65519.0).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0).bits, 0x7c00);
  for (std::uint32_t i = 0; i < 0x7c00; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    ASSERT_EQ(static_cast<double>(bits::half_to_float(bits)), value_of(bits, 10, 5));
  }
}

TEST(HostHeader, bfloat16_rounds_to_the_nearest_even) { holds_for_every_number<Bfloat16>(7, 8); }

// All codes of a byte, both ways; `largest` is the last that is a number.
template <class Type>
void holds_for_every_byte(int mantissa, int exponent, std::uint8_t largest) {
  const auto code = [](int bits) { return std::bit_cast<Type>(static_cast<std::uint8_t>(bits)); };
  const auto value = [&](int bits) { return value_of(static_cast<std::uint16_t>(bits), mantissa, exponent); };
  for (int i = 0; i <= largest; ++i) {
    ASSERT_EQ(static_cast<double>(static_cast<float>(code(i))), value(i)) << i;
    ASSERT_EQ(static_cast<double>(static_cast<float>(code(i | 0x80))), -value(i)) << i;
    ASSERT_EQ(Type(value(i)).bits, i);
    ASSERT_EQ(Type(-value(i)).bits, i | 0x80);
    ASSERT_EQ(Type(static_cast<float>(value(i))).bits, i);
    if (i == largest) break;
    // Half way to the next one: the even one; a hair beyond or before: the nearer one.
    const double middle = (value(i) + value(i + 1)) / 2;
    ASSERT_EQ(Type(middle).bits, i % 2 == 0 ? i : i + 1) << i;
    ASSERT_EQ(Type(-middle).bits, (i % 2 == 0 ? i : i + 1) | 0x80) << i;
    ASSERT_EQ(Type(std::nextafter(middle, 1e300)).bits, i + 1) << i;
    ASSERT_EQ(Type(std::nextafter(middle, 0)).bits, i) << i;
  }
  for (const double large : {value(largest) * 1.01, value(largest) * 2, 1e300, HUGE_VAL}) {
    ASSERT_EQ(Type(large).bits, largest) << large;
    ASSERT_EQ(Type(-large).bits, largest | 0x80) << large;
  }
  ASSERT_EQ(Type(5e-324).bits, 0);
  ASSERT_EQ(Type(-0.0).bits, 0x80);
  ASSERT_TRUE(std::isnan(static_cast<float>(Type(std::nan("")))));
  ASSERT_TRUE(std::isnan(static_cast<float>(code(0xff)))) << "the poison of outputs";
}

TEST(HostHeader, fp8_rounds_to_the_nearest_even_and_saturates) {
  holds_for_every_byte<Fp8E4m3>(3, 4, 0x7e);
  holds_for_every_byte<Fp8E5m2>(2, 5, 0x7b);
  // Values of the formats' definition (OCP 8-bit floating point, revision 1.0, table 2).
  const auto number = [](auto type) { return static_cast<float>(type); };
  EXPECT_EQ(number(std::bit_cast<Fp8E4m3>(std::uint8_t{0x7e})), 448);
  EXPECT_EQ(number(std::bit_cast<Fp8E4m3>(std::uint8_t{0x01})), 0x1p-9F);
  EXPECT_EQ(number(std::bit_cast<Fp8E4m3>(std::uint8_t{0x08})), 0x1p-6F);
  EXPECT_TRUE(std::isnan(number(std::bit_cast<Fp8E4m3>(std::uint8_t{0x7f}))));
  EXPECT_EQ(number(std::bit_cast<Fp8E5m2>(std::uint8_t{0x7b})), 57344);
  EXPECT_EQ(number(std::bit_cast<Fp8E5m2>(std::uint8_t{0x01})), 0x1p-16F);
  EXPECT_TRUE(std::isinf(number(std::bit_cast<Fp8E5m2>(std::uint8_t{0x7c}))));
  for (const int nan : {0x7d, 0x7e, 0x7f, 0xfd, 0xfe})
    EXPECT_TRUE(std::isnan(number(std::bit_cast<Fp8E5m2>(static_cast<std::uint8_t>(nan))))) << nan;
}

TEST(HostHeader, a_precision_becomes_a_type) {
  const auto size = [](auto zero) {
    return static_cast<int>(sizeof zero) * 10 + (static_cast<float>(zero) == 0 ? 1 : 0);
  };
  EXPECT_EQ(with_precision(WEIR_FP64, size), 81);
  EXPECT_EQ(with_precision(WEIR_FP32, size), 41);
  EXPECT_EQ(with_precision(WEIR_FP16, size), 21);
  EXPECT_EQ(with_precision(WEIR_BF16, size), 21);
  EXPECT_EQ(with_precision(WEIR_FP8_E4M3, size), 11);
  EXPECT_EQ(with_precision(WEIR_FP8_E5M2, size), 11);
  with_precision(WEIR_FP64, [](auto zero) { static_assert(sizeof(Wide<decltype(zero)>) >= 4); });
}

TEST(HostHeader, parameters_are_found_by_name) {
  const double grid[] = {4, 5, 6};
  const WeirParameter parameters[] = {{"grid", 3, grid}};
  WeirProblem problem{};
  problem.parameter_count = 1;
  problem.parameters = parameters;
  EXPECT_EQ(parameter(&problem, "grid", 2), 6);
  EXPECT_EQ(parameter(&problem, "grid", 3, -1), -1);
  EXPECT_EQ(parameter(&problem, "rows", 0, 7), 7);
}

}  // namespace
}  // namespace weir::testing
