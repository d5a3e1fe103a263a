// Every kernel, every type, odd sizes: CPU bodies in any block order against the reference, and errors that must show.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "kernel/chain.h"
#include "kernel/launch.h"

namespace weir {
namespace {

constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
using Extents = std::array<std::int64_t, kMaxOperands>;

constexpr Precision precision_of(ElementType type) {
  return type == ElementType::f16 ? Precision::fp16 : type == ElementType::bf16 ? Precision::bf16 : Precision::fp32;
}

struct Entry {
  std::string_view kernel;
  KernelShape shape;
  Extents extents;
};

std::vector<Entry> entries() {
  std::vector<Entry> all;
  const auto list = [&](std::string_view kernel, ElementType type, std::array<std::int64_t, kMaxDims> dims,
                        std::array<float, kMaxScalars> scalars, Extents extents) {
    all.push_back({kernel, {.type = type, .precision = precision_of(type), .dims = dims, .scalars = scalars}, extents});
  };
  for (const ElementType type : kFloats) {
    for (const auto [m, n, k] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {1, 1300, 70}, {300, 1, 37}, {131, 67, 129}, {257, 1029, 530}})
      for (std::int64_t flags = 0; flags < 4; ++flags) {
        list("gemm", type, {m, n, k, flags}, {1.0f, 0.0f}, {m * k, k * n, m * n});
        list("gemm", type, {m, n, k, flags}, {-0.5f, 1.5f}, {m * k, k * n, m * n});
      }
    for (const std::int64_t n : {1, 255, 256, 257, 1023, 16384, 16385, 50001}) {
      using enum ChainOp;
      list("chain", type, {n, 0}, {}, {n, n});
      list("chain", type, {n, chain_ops({mul})}, {1.5f}, {n, n});
      list("chain", type, {n, chain_ops({mul, add, abs, clamp})}, {1.5f, 0.5f, 0.0f, 2.0f}, {n, n});
      list("chain", type, {n, chain_ops({clamp, clamp})}, {-1.0f, 1.5f, -0.5f, 0.5f}, {n, n});
      list("chain", type, {n, chain_ops({relu, square, square, add})}, {-0.75f}, {n, n});
      list("gelu", type, {n}, {}, {n, n});
    }
    for (const auto [rows, columns] :
         {std::array<std::int64_t, 2>{1, 1}, {7, 1}, {1, 1000}, {33, 127}, {130, 257}, {3, 20011}}) {
      list("softmax", type, {rows, columns}, {}, {rows * columns, rows * columns});
      list("layer_norm", type, {rows, columns}, {1e-5f}, {rows * columns, columns, columns, rows * columns});
      list("reduce", type, {rows, columns, 0}, {}, {rows * columns, columns});
      list("reduce", type, {rows, columns, 1}, {}, {rows * columns, rows});
    }
  }
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32}) {
    for (const auto [count, width, rows] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {5, 1, 3}, {100, 33, 61}, {40, 1000, 64}, {3, 20000, 9}}) {
      list("gather", type, {count, width, rows}, {}, {rows * width, count, count * width});
      list("scatter", type, {count, width, rows}, {}, {count * width, count, rows * width});
    }
    for (const std::int64_t n : {1, 255, 16384, 40001}) {
      list("copy", type, {n}, {}, {n, n});
      list("fill", type, {n, 0, 0}, {-3.7f}, {n});
      list("fill", type, {n, 1, 99}, {1000.0f, 0.1f}, {n});
    }
  }
  list("spin", ElementType::f32, {2000, 5}, {}, {5});
  return all;
}

std::string text_of(const Entry& entry) {
  std::string text = std::string(entry.kernel) + ' ' + std::string(name_of(entry.shape.type));
  for (const std::int64_t dim : entry.shape.dims) text += ' ' + std::to_string(dim);
  return text;
}

TEST(Catalogue, ExtentsAreExact) {
  for (const Entry& entry : entries())
    EXPECT_EQ(kernel(kernel_named(entry.kernel)).extents(entry.shape), entry.extents) << text_of(entry);
}

TEST(Catalogue, BodiesAgreeWithReference) {
  unsigned seed = 1;
  for (const Entry& entry : entries()) {
    SCOPED_TRACE(text_of(entry));
    Launch ours(entry.kernel, entry.shape);
    Launch theirs(ours);
    ours.run(seed++);
    theirs.body().reference(theirs.call());
    ASSERT_LE(ours.error_against(theirs), ours.body().tolerance(entry.shape));
  }
}

TEST(Catalogue, PlantedErrorsShow) {
  unsigned seed = 1;
  for (const Entry& entry : entries()) {
    SCOPED_TRACE(text_of(entry));
    Launch theirs(entry.kernel, entry.shape);
    Launch untouched(theirs);
    Launch ours(theirs);
    theirs.body().reference(theirs.call());
    ours.run(seed);
    const std::size_t out = ours.output();
    const double tolerance = ours.body().tolerance(entry.shape);
    ASSERT_LT(tolerance, 0.05);

    const std::size_t element = random_bits(5, seed++) % ours.count(out);
    const double right = ours.get(out, element);
    double squares = 0;
    for (std::size_t e = 0; e < ours.count(out); ++e) squares += std::pow(theirs.get(out, e), 2);
    const double scale = std::max(std::fabs(right), std::sqrt(squares / static_cast<double>(ours.count(out))));
    ours.set(out, element,
             entry.shape.type == ElementType::i32 ? right + 1 : right + std::max(3 * tolerance, 0.02) * scale + 1e-6);
    EXPECT_GT(ours.error_against(theirs), tolerance);
    if (entry.shape.type != ElementType::i32) {
      ours.set(out, element, std::nan(""));
      EXPECT_GT(ours.error_against(theirs), tolerance);
    }

    // A block that never ran leaves poison behind. Scatter and beta != 0 keep old values, which differ too.
    Launch partial(untouched);
    const std::uint32_t blocks = partial.body().blocks(entry.shape);
    const std::uint32_t skipped = random_bits(6, seed) % blocks;
    partial.run(seed, skipped);
    Launch whole(untouched);
    whole.run(seed);
    const bool writes_something = std::memcmp(whole.bytes(out), untouched.bytes(out), whole.size_bytes(out)) != 0;
    if (blocks == 1 ? writes_something : entry.kernel != "scatter") {
      EXPECT_GT(partial.error_against(theirs), tolerance);
    }
  }
}

TEST(Catalogue, InPlaceWhereAllowed) {
  for (const ElementType type : kFloats) {
    const KernelShape shape{
        .type = type, .dims = {20000, chain_ops({ChainOp::mul, ChainOp::add})}, .scalars = {1.5f, 0.5f}};
    Launch apart("chain", shape), within("chain", shape);
    within.call().operands[1] = within.call().operands[0];
    apart.run(1);
    within.run(2);
    EXPECT_EQ(std::memcmp(apart.bytes(1), within.bytes(0), apart.size_bytes(1)), 0);
  }
}

TEST(Catalogue, NanPassesThroughChains) {
  using enum ChainOp;
  for (const long long ops : {chain_ops({relu}), chain_ops({clamp}), chain_ops({abs}), chain_ops({square})}) {
    Launch ours("chain", {.dims = {3, ops}, .scalars = {-1.0f, 1.0f}});
    ours.set(0, 1, std::nan(""));
    Launch theirs(ours);
    ours.run(1);
    theirs.body().reference(theirs.call());
    EXPECT_TRUE(std::isnan(ours.get(1, 1)));
    EXPECT_TRUE(std::isnan(theirs.get(1, 1)));
  }
}

TEST(Catalogue, HardRows) {
  // Constant rows, rows far from zero, and large logits: where careless formulas lose all their digits.
  const KernelShape shape{.dims = {3, 1000}, .scalars = {1e-5f}};
  for (const std::string_view name : {"softmax", "layer_norm"}) {
    Launch ours(name, shape);
    for (std::size_t c = 0; c < 1000; ++c) {
      ours.set(0, c, 123.456);
      ours.set(0, 1000 + c, 1000 + ours.get(0, 1000 + c));
      ours.set(0, 2000 + c, 80 * ours.get(0, 2000 + c));
    }
    Launch theirs(ours);
    ours.run(1);
    theirs.body().reference(theirs.call());
    EXPECT_LE(ours.error_against(theirs), ours.body().tolerance(shape)) << name;
  }
}

TEST(Catalogue, LongSumsDoNotDrift) {
  for (const std::int64_t axis : {0, 1}) {
    const KernelShape shape{.dims = {axis == 0 ? 1000000 : 1, axis == 0 ? 1 : 1000000, axis}};
    Launch ours("reduce", shape);
    for (std::size_t e = 0; e < ours.count(0); ++e) ours.set(0, e, 0.1f);
    ours.run(1);
    EXPECT_EQ(static_cast<float>(ours.get(1, 0)), static_cast<float>(1e6 * static_cast<double>(0.1f)));
  }
}

TEST(Catalogue, SpinLastsAsLongAsAsked) {
  Launch launch("spin", {.dims = {3'000'000, 2}});
  const std::int64_t started_ns = now_ns();
  launch.run(1);
  EXPECT_GE(now_ns() - started_ns, 6'000'000);
}

TEST(Catalogue, Geometry) {
  for (const char* const name : {"chain", "gelu", "copy", "fill"}) {
    const Geometry geometry = kernel(kernel_named(name)).geometry({.dims = {256}});
    EXPECT_EQ(geometry.grid, 1u) << name;
    EXPECT_EQ(geometry.block, 256u) << name;
  }
  EXPECT_EQ(kernel(kernel_named("gemm")).geometry, nullptr);
  for (const Entry& entry : entries()) {
    const auto geometry = kernel(kernel_named(entry.kernel)).geometry;
    if (geometry == nullptr) continue;
    EXPECT_GE(geometry(entry.shape).grid, 1u);
    EXPECT_LE(geometry(entry.shape).block, 1024u);
    EXPECT_EQ(geometry(entry.shape).block % 32, 0u);
  }
}

TEST(Catalogue, Cost) {
  const Cost gemm = kernel(kernel_named("gemm")).cost({.type = ElementType::f16, .dims = {2, 3, 5}, .scalars = {1, 0}});
  EXPECT_EQ(gemm.flop, 60);
  EXPECT_EQ(gemm.bytes, 2 * (10 + 15 + 6));
  const Cost chain = kernel(kernel_named("chain")).cost({.dims = {100, chain_ops({ChainOp::mul, ChainOp::abs})}});
  EXPECT_EQ(chain.flop, 200);
  EXPECT_EQ(chain.bytes, 800);
  for (const Entry& entry : entries()) EXPECT_GT(kernel(kernel_named(entry.kernel)).cost(entry.shape).bytes, 0);
}

TEST(Catalogue, Names) {
  std::set<std::string_view> names;
  for (const Kernel& each : kernels()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(each.summary.empty()) << each.name;
    EXPECT_EQ(kernel(kernel_named(each.name)).name, each.name);
  }
  EXPECT_EQ(names.size(), 23u);
  try {
    kernel_named("sofmax");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_EQ(error.hint, "Did you mean 'softmax'?");
  }
}

TEST(Catalogue, ChainPacking) {
  using enum ChainOp;
  static_assert(chain_ops({mul, add, abs, clamp}) == 0x04030201);
  static_assert(chain_ops({}) == 0);
  EXPECT_ANY_THROW(static_cast<void>(chain_ops({abs, abs, abs, abs, abs})));
  EXPECT_ANY_THROW(static_cast<void>(chain_ops({clamp, clamp, mul})));
}

// Products too large for plain loops take another way through the reference.
TEST(Gemm, LargeReference) {
  for (const ElementType type : kFloats)
    for (const std::int64_t flags : {0, 3}) {
      const KernelShape shape{
          .type = type, .precision = precision_of(type), .dims = {513, 517, 521, flags}, .scalars = {0.5f, 0.25f}};
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

}  // namespace
}  // namespace weir
