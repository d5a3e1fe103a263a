// Matrix products: how batches are packed, the reference's other way, and Freivalds' check that must see errors.
#include "kernel/gemm.h"

#include <gtest/gtest.h>

#include "base/vendor_library.h"
#include "kernel/fp8.h"
#include "kernel/gemm_tiles.h"
#include "kernel/launch.h"

namespace weir {
namespace {

TEST(Gemm, Packing) {
  static_assert(gemm_flags(true, false, 5) == (1 | 5 << 8));
  static_assert(gemm_flags(false, true) == (2 | 1 << 8));
  for (const std::int64_t flags : {std::int64_t{2}, gemm_flags(false, true)}) {
    EXPECT_EQ(gemm_batch({.dims = {1, 1, 1, flags}}), 1);
    EXPECT_FALSE(transposes_a({.dims = {1, 1, 1, flags}}));
    EXPECT_TRUE(transposes_b({.dims = {1, 1, 1, flags}}));
  }
}

TEST(Gemm, TilesCoverEveryProduct) {
  EXPECT_EQ(gemm_geometry({.dims = {1, 1, 1, 0}}).grid, 1u);
  EXPECT_EQ(gemm_geometry({.dims = {64, 64, 1000, 3}}).grid, 1u);
  EXPECT_EQ(gemm_geometry({.dims = {65, 64, 1, 0}}).grid, 2u);
  EXPECT_EQ(gemm_geometry({.dims = {128, 129, 1, gemm_flags(true, true, 5)}}).grid, 2u * 3 * 5);
  EXPECT_EQ(gemm_geometry({.dims = {1, 1, 1, 0}}).block, 256u);
}

// A check runs references and verifications on all cores: a library that starts threads of its own in each of them
// spends its time on waiting for them.
TEST(Gemm, ReferencesKeepTheLibraryToOneThread) {
  constexpr std::int64_t n = 256;
  std::vector<float> a(n * n, 1), b(n * n, 1), c(n * n, 0);
  const KernelCall call{{.dims = {n, n, n, gemm_flags(false, false)}, .scalars = {1, 0}},
                        {a.data(), b.data(), c.data()}};
  const Kernel& gemm = kernel(kernel_named("gemm"));
  VendorLibrary library({"libopenblas.so.0", "libopenblas.so"});
  void (*const set_threads)(int) = library.want("openblas_set_num_threads");
  int (*const threads)() = library.want("openblas_get_num_threads");
  if (threads == nullptr) GTEST_SKIP() << library.error();  // it lies where only the build has found it
  set_threads(4);
  gemm.reference(call);
  EXPECT_EQ(threads(), 1);
  EXPECT_EQ(c[0], static_cast<float>(n));
  set_threads(4);
  EXPECT_LE(gemm.verify(call).error, gemm.verify(call).tolerance);
  EXPECT_EQ(threads(), 1);
}

// A batch is what its products are one by one.
TEST(Gemm, BatchIsManyProducts) {
  const KernelShape shape{.dims = {150, 70, 33, gemm_flags(false, true, 4)}, .scalars = {2, 0.5f}};
  Launch batch("gemm", shape), apart(batch);
  EXPECT_EQ(batch.body().blocks(shape), 4 * 2u);
  batch.run(1);
  KernelCall one = apart.call();
  one.shape.dims[3] = 2;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t operand = 0; operand < 3; ++operand)
      one.operands[operand] = apart.bytes(operand) + i * apart.size_bytes(operand) / 4;
    for (std::uint32_t block = 0; block < 2; ++block) apart.body().run_block(one, block);
  }
  EXPECT_EQ(std::memcmp(batch.bytes(2), apart.bytes(2), batch.size_bytes(2)), 0);
}

// Products too large for plain loops take another way through the reference.
TEST(Gemm, LargeReference) {
  for (const ElementType type : kFloats)
    for (const std::int64_t flags : {std::int64_t{0}, gemm_flags(true, true, 2)}) {
      const KernelShape shape{.type = type,
                              .precision = precision_of(type),
                              .dims = {flags == 0 ? 513 : 300, 517, 521, flags},
                              .scalars = {0.5f, 0.25f}};
      Launch ours("gemm", shape);
      Launch theirs(ours);
      ours.run(1);
      theirs.body().reference(theirs.call());
      EXPECT_LE(ours.error_against(theirs), ours.body().tolerance(shape));
    }
}

class GemmVerify : public testing::TestWithParam<std::tuple<ElementType, std::int64_t>> {
 protected:
  static Launch product(std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto [type, flags] = GetParam();
    Launch launch("gemm",
                  {.type = type, .precision = precision_of(type), .dims = {m, n, k, flags}, .scalars = {0.5f, 0.0f}});
    launch.run(1);
    return launch;
  }
  static bool accepts(Launch& launch) {
    const Verification result = launch.body().verify(launch.call());
    return result.error <= result.tolerance;
  }
};

TEST_P(GemmVerify, AcceptsRightResults) {
  for (const auto [m, n, k] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {1, 2, 1}, {3, 2, 300}, {200, 1, 50}, {130, 700, 90}, {300, 257, 600}}) {
    Launch launch = product(m, n, k);
    EXPECT_TRUE(accepts(launch)) << m << ' ' << n << ' ' << k << ' ' << launch.body().verify(launch.call()).error;
  }
}

TEST_P(GemmVerify, RejectsOneWrongElement) {
  Launch launch = product(200, 600, 100);
  double squares = 0;
  for (std::size_t e = 0; e < launch.count(2); ++e) squares += std::pow(launch.get(2, e), 2);
  const double rms = std::sqrt(squares / static_cast<double>(launch.count(2)));
  for (unsigned trial = 0; trial < 20; ++trial) {
    const std::size_t element = random_bits(11, trial) % launch.count(2);
    const double right = launch.get(2, element);
    launch.set(2, element, right + rms);
    EXPECT_FALSE(accepts(launch)) << element;
    launch.set(2, element, std::nan(""));
    EXPECT_FALSE(accepts(launch)) << element;
    launch.set(2, element, right);
  }
  EXPECT_TRUE(accepts(launch));
}

TEST_P(GemmVerify, LooksAtEveryProductOfABatch) {
  const auto [type, flags] = GetParam();
  Launch launch(
      "gemm",
      {.type = type, .precision = precision_of(type), .dims = {40, 130, 30, flags | 5 << 8}, .scalars = {0.5f, 0.0f}});
  launch.run(1);
  EXPECT_TRUE(accepts(launch));
  for (std::size_t product = 0; product < 5; ++product) {
    const std::size_t element = product * 40 * 130 + 1234;
    const double right = launch.get(2, element);
    launch.set(2, element, right + launch.rms(2));
    const Verification found = launch.body().verify(launch.call());
    EXPECT_GT(found.error, found.tolerance) << product;
    EXPECT_EQ(found.element / (40 * 130), product);
    launch.set(2, element, right);
  }
}

TEST_P(GemmVerify, RejectsTransposedInputs) {
  for (const std::int64_t mistake : {1, 2}) {
    Launch launch = product(128, 128, 128);
    launch.call().shape.dims[3] ^= mistake;
    EXPECT_FALSE(accepts(launch));
  }
}

TEST_P(GemmVerify, RejectsZerosAndSwappedRows) {
  Launch launch = product(64, 300, 65);
  for (std::size_t c = 0; c < 300; ++c) {
    const double first = launch.get(2, c);
    launch.set(2, c, launch.get(2, 300 + c));
    launch.set(2, 300 + c, first);
  }
  EXPECT_FALSE(accepts(launch));
  for (std::size_t e = 0; e < launch.count(2); ++e) launch.set(2, e, 0);
  EXPECT_FALSE(accepts(launch));
  for (std::size_t e = 0; e < launch.count(2); ++e) launch.set(2, e, HUGE_VAL);
  EXPECT_FALSE(accepts(launch));
}

INSTANTIATE_TEST_SUITE_P(All, GemmVerify, testing::Combine(testing::ValuesIn(kFloats), testing::Values(0, 1, 2, 3)));

TEST(Gemm, VerifyAllowsTf32) {
  KernelShape shape{.precision = Precision::tf32, .dims = {100, 300, 200}, .scalars = {1, 0}};
  Launch launch("gemm", shape);
  Launch exact(launch);
  // What a matrix unit does to its factors: 13 bits cut off.
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    for (std::size_t e = 0; e < launch.count(i); ++e) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(launch.get(i, e)));
      launch.set(i, e, std::bit_cast<float>(bits & ~0x1fffu));
    }
  launch.run(1);
  std::memcpy(exact.bytes(2), launch.bytes(2), launch.size_bytes(2));
  const Verification as_tf32 = exact.body().verify(exact.call());
  EXPECT_LE(as_tf32.error, as_tf32.tolerance);
  exact.call().shape.precision = Precision::fp32;
  const Verification as_fp32 = exact.body().verify(exact.call());
  EXPECT_GT(as_fp32.error, as_fp32.tolerance);
}

TEST(Gemm, VerifyDeclinesBeta) {
  Launch launch("gemm", {.dims = {4, 4, 4}, .scalars = {1, 1}});
  launch.run(1);
  const Verification result = launch.body().verify(launch.call());
  EXPECT_FALSE(result.error <= result.tolerance);
}

// The operands as products of fp8 see them.
TEST(Fp8, operands_are_scaled_by_powers_of_two_and_rounded) {
  const auto rounded = [](Precision precision, std::vector<float> values) {
    std::vector<Bf16> stored;
    for (const float value : values) stored.push_back(from_float<Bf16>(value));
    const auto count = static_cast<std::int64_t>(stored.size());
    const Fp8Operand operand(precision, Fp8Operand::scale_of(precision, stored.data(), count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = operand.rounded(stored[i]);
    return values;
  };
  using Values = std::vector<float>;
  // 448 itself is the largest e4m3; 1.0625 lies between 1 and 1.125, and ties go to the even one.
  EXPECT_EQ(rounded(Precision::fp8_e4m3, {448, 17, 19, -1.0625f, 0}), (Values{448, 16, 20, -1, 0}));
  // 1.75 * 2^8 at most: 480 is scaled to 240, so it keeps its 4 digits.
  EXPECT_EQ(rounded(Precision::fp8_e4m3, {480, 1}), (Values{480, 1}));
  // A hundredth of that: the same digits, at another scale.
  EXPECT_EQ(rounded(Precision::fp8_e4m3, {448.0f / 128, 17.0f / 128}), (Values{448.0f / 128, 16.0f / 128}));
  // What is far smaller than the largest becomes zero.
  EXPECT_EQ(rounded(Precision::fp8_e4m3, {256, 0x1p-11f}), (Values{256, 0}));
  EXPECT_EQ(rounded(Precision::fp8_e5m2, {1, 1.125f, 1.375f, 0x1p-11f}), (Values{1, 1, 1.5f, 0x1p-11f}));
  EXPECT_EQ(rounded(Precision::fp8_e4m3, {0, 0}), (Values{0, 0}));
  for (const Precision precision : {Precision::fp8_e4m3, Precision::fp8_e5m2})
    for (const float odd : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      const Values strange = rounded(precision, {odd, -odd, 1, 2});
      EXPECT_TRUE(std::isnan(strange[0]) && std::isnan(strange[1]));
      EXPECT_EQ(strange[2], 1);
    }
  for (const float extreme : {0x1p-110f, 0x1p126f})
    EXPECT_EQ(rounded(Precision::fp8_e4m3, {extreme, 0}), (Values{extreme, 0}));
}

KernelShape fp8_shape(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t flags) {
  return {.type = ElementType::bf16, .precision = precision, .dims = {m, n, k, flags}, .scalars = {1, 0}};
}

TEST(Fp8, products_agree_with_their_reference) {
  for (const Precision precision : {Precision::fp8_e4m3, Precision::fp8_e5m2})
    for (const std::int64_t flags :
         {gemm_flags(false, false), gemm_flags(true, false), gemm_flags(false, true), gemm_flags(true, true, 3)})
      for (const std::array<float, kMaxScalars> scalars : {std::array<float, kMaxScalars>{1, 0}, {-0.5f, 1.5f}}) {
        KernelShape shape = fp8_shape(precision, 150, 80, 129, flags);
        shape.scalars = scalars;
        Launch ours("gemm", shape), theirs(ours);
        ours.run(1);
        theirs.body().reference(theirs.call());
        EXPECT_LE(ours.error_against(theirs), ours.body().tolerance(shape)) << name_of(precision) << ' ' << flags;
        if (scalars[1] != 0) continue;
        const Verification found = ours.body().verify(ours.call());
        EXPECT_LE(found.error, found.tolerance);
      }
}

// As the cpu device does once per launch; scales that do not fit the data show that the blocks take them.
TEST(Fp8, scales_that_were_found_before_are_used) {
  const KernelShape shape = fp8_shape(Precision::fp8_e4m3, 300, 32, 40, gemm_flags(false, true, 2));
  Launch ours("gemm", shape), theirs(ours), wrong(ours);
  find_fp8_scales(ours.call());
  ours.run(1);
  theirs.run(1);
  EXPECT_EQ(ours.error_against(theirs), 0);
  find_fp8_scales(wrong.call());
  wrong.call().shape.scalars[2] *= 0x1p-40f;
  wrong.run(1);
  EXPECT_GT(wrong.error_against(theirs), wrong.body().tolerance(shape));
}

// Libraries do not multiply them in fp8, so nobody does.
TEST(Fp8, products_of_odd_columns_stay_in_bf16) {
  KernelShape shape = fp8_shape(Precision::fp8_e4m3, 64, 10, 32, 0);
  EXPECT_FALSE(rounds_to_fp8(shape));
  Launch ours("gemm", shape), theirs(ours);
  theirs.call().shape.precision = Precision::bf16;
  EXPECT_EQ(ours.body().tolerance(shape), theirs.body().tolerance(theirs.call().shape));
  ours.run(1);
  theirs.run(1);
  EXPECT_EQ(ours.error_against(theirs), 0);
}

// A device that multiplied what is stored, or rounded to the other format, is found.
TEST(Fp8, other_roundings_are_wrong) {
  for (const Precision precision : {Precision::fp8_e4m3, Precision::fp8_e5m2})
    for (const Precision other :
         {Precision::bf16, precision == Precision::fp8_e4m3 ? Precision::fp8_e5m2 : Precision::fp8_e4m3}) {
      const KernelShape shape = fp8_shape(precision, 64, 64, 16, 0);
      Launch ours("gemm", shape), theirs(ours);
      ours.call().shape.precision = other;
      ours.run(1);
      theirs.body().reference(theirs.call());
      EXPECT_GT(ours.error_against(theirs), theirs.body().tolerance(shape)) << name_of(precision) << name_of(other);
    }
}

}  // namespace
}  // namespace weir
