// Conversions over all bit patterns, and random data against values of another implementation.
#include "kernel/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernel/random.h"
#include "kernel/reference/values.h"

namespace weir {
namespace {

bool is_nan(F16 value) { return (value.bits & 0x7fffu) > 0x7c00u; }
bool is_nan(Bf16 value) { return (value.bits & 0x7fffu) > 0x7f80u; }

// The definition of a binary format: sign, exponent, fraction.
double decoded(unsigned bits, int exponent_bits, int fraction_bits) {
  const int sign = bits >> 15 != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

template <class T>
void check_all_patterns(int exponent_bits, int fraction_bits) {
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    const T value{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(value);
    if (is_nan(value)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(is_nan(from_float<T>(wide))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide), decoded(bits, exponent_bits, fraction_bits)) << bits;
    ASSERT_EQ(std::signbit(wide), bits >> 15 != 0) << bits;
    ASSERT_EQ(from_float<T>(wide).bits, bits);
  }
}

// Between each two neighbours: below, at and above the middle. The middle goes to the even one.
template <class T>
void check_all_ties(unsigned infinity) {
  for (unsigned low = 0; low < infinity; ++low) {
    const float below = to_float(T{static_cast<std::uint16_t>(low)});
    // The neighbour of the largest finite value is the power of two that would come next.
    const float above = low + 1 == infinity ? below + (below - to_float(T{static_cast<std::uint16_t>(low - 1)}))
                                            : to_float(T{static_cast<std::uint16_t>(low + 1)});
    const float middle = std::isinf(above) ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(below) + 0x8000u)
                                           : static_cast<float>((static_cast<double>(below) + above) / 2);
    const unsigned even = low % 2 == 0 ? low : low + 1;
    for (const unsigned sign : {0u, 0x8000u}) {
      const float factor = sign == 0 ? 1.0f : -1.0f;
      ASSERT_EQ(from_float<T>(factor * std::nextafter(middle, 0.0f)).bits, sign | low);
      ASSERT_EQ(from_float<T>(factor * middle).bits, sign | even);
      ASSERT_EQ(from_float<T>(factor * std::nextafter(middle, HUGE_VALF)).bits, sign | (low + 1));
    }
  }
}

TEST(Numeric, HalfPatterns) { check_all_patterns<F16>(5, 10); }
TEST(Numeric, Bfloat16Patterns) { check_all_patterns<Bf16>(8, 7); }
TEST(Numeric, HalfRoundsToNearestEven) { check_all_ties<F16>(0x7c00); }
TEST(Numeric, Bfloat16RoundsToNearestEven) { check_all_ties<Bf16>(0x7f80); }

TEST(Numeric, KnownValues) {
  EXPECT_EQ(from_float<F16>(1.0f).bits, 0x3c00);
  EXPECT_EQ(from_float<F16>(-2.0f).bits, 0xc000);
  EXPECT_EQ(from_float<F16>(0.1f).bits, 0x2e66);
  EXPECT_EQ(from_float<F16>(65504.0f).bits, 0x7bff);
  EXPECT_EQ(from_float<F16>(65519.996f).bits, 0x7bff);
  EXPECT_EQ(from_float<F16>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(from_float<F16>(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(from_float<F16>(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(from_float<F16>(0x1.8p-25f).bits, 0x0001);
  EXPECT_EQ(from_float<F16>(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(from_float<F16>(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(from_float<Bf16>(1.0f).bits, 0x3f80);
  EXPECT_EQ(from_float<Bf16>(3.14159274f).bits, 0x4049);
  EXPECT_EQ(from_float<Bf16>(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(from_float<Bf16>(std::numeric_limits<float>::denorm_min()).bits, 0x0000);
  EXPECT_TRUE(is_nan(from_float<F16>(std::nanf("")))) << "a NaN must not become infinity";
  // The payload of this one lies in the bits that are cut off.
  EXPECT_TRUE(is_nan(from_float<Bf16>(std::bit_cast<float>(0x7f800001u))));
}

TEST(Numeric, AgreesWithNumpy) {
  for (const auto& known : values::kConversions) {
    const float value = std::bit_cast<float>(known.f32);
    EXPECT_EQ(from_float<F16>(value).bits, known.f16) << value;
    EXPECT_EQ(from_float<Bf16>(value).bits, known.bf16) << value;
  }
}

TEST(Numeric, PrecisionNames) {
  for (const Precision precision : kCataloguePrecisions) EXPECT_EQ(precision_named(name_of(precision)), precision);
  EXPECT_FALSE(precision_named("fp64").has_value());  // of packages alone
  EXPECT_FALSE(precision_named("fp17").has_value());
  EXPECT_EQ(storage_of(Precision::tf32), ElementType::f32);
  for (const Precision precision : {Precision::fp8_e4m3, Precision::fp8_e5m2})
    EXPECT_EQ(storage_of(precision), ElementType::bf16);
}

TEST(Random, GoldenValues) {
  for (const auto& known : values::kRandom) {
    EXPECT_EQ(random_bits(known.seed, known.index), known.bits) << known.seed << ' ' << known.index;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(random_uniform(known.seed, known.index, 1.5f, -0.25f)), known.uniform);
  }
}

TEST(Random, StaysInRangeAndIsBalanced) {
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const float value = random_unit(7, static_cast<unsigned>(i));
    ASSERT_GE(value, -1.0f);
    ASSERT_LT(value, 1.0f);
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  // Five standard errors of the mean and of the mean square of a uniform variable.
  EXPECT_LT(std::fabs(sum / kCount), 5 * std::sqrt(1.0 / 3 / kCount));
  EXPECT_LT(std::fabs(squares / kCount - 1.0 / 3), 5 * std::sqrt(4.0 / 45 / kCount));
}

}  // namespace
}  // namespace weir
