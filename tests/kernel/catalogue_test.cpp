// Every kernel, every type, odd sizes: CPU bodies in any block order against the reference, and errors that must show.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "kernel/chain.h"
#include "kernel/gemm.h"
#include "kernel/launch.h"
#include "kernel/region.h"

namespace weir {
namespace {

using Extents = std::array<std::int64_t, kMaxOperands>;

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
        if (m * n * k > 100'000'000) continue;
        list("gemm", type, {m, n, k, flags | 3 << 8}, {-0.5f, 0.0f}, {3 * m * k, 3 * k * n, 3 * m * n});
        list("gemm", type, {m, n, k, flags | 2 << 8}, {-0.5f, 1.5f}, {2 * m * k, 2 * k * n, 2 * m * n});
      }
    for (const std::int64_t n : {1, 255, 256, 257, 1023, 16384, 16385, 50001}) {
      using enum ChainOp;
      list("chain", type, {n, 0}, {}, {n, n});
      list("chain", type, {n, chain_ops({mul})}, {1.5f}, {n, n});
      list("chain", type, {n, chain_ops({mul, add, abs, clamp})}, {1.5f, 0.5f, 0.0f, 2.0f}, {n, n});
      list("chain", type, {n, chain_ops({clamp, clamp})}, {-1.0f, 1.5f, -0.5f, 0.5f}, {n, n});
      list("chain", type, {n, chain_ops({relu, square, square, add})}, {-0.75f}, {n, n});
      const std::int64_t columns = n % 3 == 0 ? 3 : n, rows = n / columns;
      const auto region = [&](std::initializer_list<RegionOp> ops, std::array<float, kMaxScalars> scalars,
                              Extents extents) {
        list("region", type, {rows, columns, region_ops(ops)}, scalars, extents);
      };
      region({RegionOp::mul, RegionOp::add, RegionOp::relu}, {1.5f, 0.1f}, {n, n});
      region({RegionOp::gelu}, {}, {n, n});
      region({RegionOp::add_matrix, RegionOp::add_row}, {1, -1}, {n, n, columns, n});
      region({RegionOp::add_row, RegionOp::clamp, RegionOp::abs}, {0.5f, -0.25f, 2.0f}, {n, columns, n});
      list("gelu", type, {n}, {}, {n, n});
      list("gelu_backward", type, {n}, {}, {n, n, n});
      list("adam", type, {n}, {1e-2f, 0.9f, 0.999f, 1e-8f}, {n, n, n, n});
      list("adamw", type, {n}, {0.9f, 0.999f, 1e-8f, 0.1f}, {n, n, n, n, 3, n});
      list("weighted_bce", type, {n}, {0.125f}, {n, n, n, n, 1});
      list("dropout", type, {1, n, 0, 99}, {0.25f, 4 / 3.0f}, {n, 1, 1, n});
      list("dropout", type, {n, 3, 7, 0}, {0.5f, 2}, {3 * n, 1, 1, 3 * n});
      // The last parts may be empty.
      for (const std::int64_t parts : {1, 3, 40}) list("square_sum", type, {n, parts}, {}, {n, parts});
    }
    for (const auto [count, width, rows] : {std::array<std::int64_t, 3>{1, 1, 1},
                                            {300, 1, 7},
                                            {100, 33, 61},
                                            {40, 1000, 64},
                                            {9, 5000, 3},
                                            {5000, 3, 2}}) {
      list("embedding_grad", type, {count, width, rows}, {}, {count, count * width, rows * width});
      // With several blocks some rows would have nothing added, and a block that never ran would not show.
      if (rows * width <= 4096)
        list("embedding_grad", type, {count, width, rows}, {1}, {count, count * width, rows * width});
    }
    for (const auto [rows, columns] :
         {std::array<std::int64_t, 2>{1, 1}, {7, 1}, {1, 1000}, {33, 127}, {130, 257}, {3, 20011}}) {
      list("softmax", type, {rows, columns}, {}, {rows * columns, rows * columns});
      list("layer_norm", type, {rows, columns}, {1e-5f}, {rows * columns, columns, columns, rows * columns});
      list("reduce", type, {rows, columns, 0}, {}, {rows * columns, columns});
      list("reduce", type, {rows, columns, 1}, {}, {rows * columns, rows});
      const std::int64_t count = rows * columns;
      list("softmax", type, {rows, columns, 1}, {}, {count, count});
      list("softmax_backward", type, {rows, columns}, {}, {count, count, count});
      list("layer_norm_backward", type, {rows, columns}, {1e-5f}, {count, columns, count, count, 2 * rows});
      list("layer_norm_grad", type, {rows, columns}, {}, {count, count, 2 * rows, columns, columns});
      list("add", type, {rows, columns, 0}, {1.0f, 1.0f}, {count, count, count});
      list("add", type, {rows, columns, 0}, {0.75f, -1.5f}, {count, count, count});
      list("add", type, {rows, columns, 1}, {1.0f, 1.25f}, {count, columns, count});
    }
    for (const auto [groups, parts, count, stride] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                                                      {1, 7, 1, 1},
                                                      {3, 2, 20011, 20011},
                                                      {5, 33, 130, 131},
                                                      {1000, 4, 3, 9},
                                                      {2, 1000, 257, 260},
                                                      {4, 5, 9, 2}})
      list("sum_rows", type, {groups, parts, count, stride}, {0.25f},
           {(groups * parts - 1) * stride + count, groups * count});
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
      list("graph_break", type, {n, 1000}, {}, {n, n});
    }
    for (const auto [batch, rows, columns, width] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                                                     {1, 300, 131, 1},
                                                     {3, 65, 64, 1},
                                                     {2, 1, 5, 3},
                                                     {2, 33, 12, 64},
                                                     {3, 7, 1, 20000},
                                                     {1, 129, 130, 2}}) {
      const std::int64_t count = batch * rows * columns * width;
      list("transpose", type, {batch, rows, columns, width}, {}, {count, count});
    }
  }
  list("spin", ElementType::f32, {2000, 5}, {}, {5});
  for (const std::int64_t n : {1, 255, 5000}) {
    list("clip", ElementType::f32, {n}, {0.5f, 1e-3f}, {n, 3});
    list("clip", ElementType::f32, {n}, {1e6f, 1e-3f}, {n, 3});
    list("clip", ElementType::f32, {n, 1, 5, 9}, {0.5f, 2.5f, 0.5f}, {n, 3});
    list("clip", ElementType::f32, {n, 1, 0, 9}, {0.5f, 2.5f, 0.5f}, {n, 3});
    list("clip", ElementType::f32, {n, 2, 0, 9}, {0.5f, 2.5f, 0.5f}, {n, 3});
  }
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
    ++seed;
#if defined(__SANITIZE_ADDRESS__)
    // Large products take minutes there, in the same loops as small ones.
    if (kernel(kernel_named(entry.kernel)).cost(entry.shape).flop > 3e7 && seed % 4 != 0) continue;
#endif
    Launch ours(entry.kernel, entry.shape);
    Launch theirs(ours);
    ours.run(seed);
    theirs.body().reference(theirs.call());
    ASSERT_LE(ours.error_against(theirs), ours.body().tolerance(entry.shape));
  }
}

TEST(Catalogue, PlantedErrorsShow) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "runs the bodies of BodiesAgreeWithReference again, for three minutes";
#endif
  unsigned seed = 1;
  for (const Entry& entry : entries()) {
    SCOPED_TRACE(text_of(entry));
    Launch theirs(entry.kernel, entry.shape);
    Launch untouched(theirs);
    Launch ours(theirs);
    theirs.body().reference(theirs.call());
    ours.run(seed);
    const double tolerance = ours.body().tolerance(entry.shape);
    ASSERT_LT(tolerance, 0.05);
    ASSERT_FALSE(ours.outputs().empty());

    for (const std::size_t out : ours.outputs()) {
      const bool is_integer = ours.body().type_of(entry.shape, out) == ElementType::i32;
      const std::size_t element = random_bits(5, seed++) % ours.count(out);
      const double right = ours.get(out, element);
      const double scale = std::max(std::fabs(right), theirs.rms(out));
      ours.set(out, element, is_integer ? right + 1 : right + std::max(3 * tolerance, 0.02) * scale + 1e-6);
      EXPECT_GT(ours.error_against(theirs), tolerance) << out;
      if (!is_integer) {
        ours.set(out, element, std::nan(""));
        EXPECT_GT(ours.error_against(theirs), tolerance) << out;
      }
      ours.set(out, element, right);
    }

    // A block that never ran leaves poison behind. Scatter and beta != 0 keep old values, which differ too.
    Launch partial(untouched);
    const std::uint32_t blocks = partial.body().blocks(entry.shape);
    const std::uint32_t skipped = random_bits(6, seed) % blocks;
    partial.run(seed, skipped);
    Launch whole(untouched);
    whole.run(seed);
    bool writes_something = false;
    for (const std::size_t out : whole.outputs())
      writes_something =
          writes_something || std::memcmp(whole.bytes(out), untouched.bytes(out), whole.size_bytes(out)) != 0;
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
  for (const std::string_view name : {"softmax", "layer_norm", "layer_norm_backward"}) {
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

TEST(Catalogue, GraphBreakLastsAsLongAsAsked) {
  Launch launch("graph_break", {.dims = {3, 4'000'000}});
  const std::int64_t started_ns = now_ns();
  launch.run(1);
  EXPECT_GE(now_ns() - started_ns, 4'000'000);
  EXPECT_TRUE(launch.body().is_host_only);
  EXPECT_EQ(launch.body().geometry, nullptr);
}

// Column c of row r counts while c <= r % columns; the rest is zero even where the input is not a number.
TEST(Catalogue, CausalSoftmaxSeesTheTriangle) {
  for (const ElementType type : kFloats) {
    Launch ours("softmax", {.type = type, .dims = {7, 3, 1}});
    for (std::size_t e = 0; e < 21; ++e) ours.set(0, e, e % 3 > e / 3 % 3 ? std::nan("") : 0.5);
    Launch theirs(ours);
    ours.run(1);
    theirs.body().reference(theirs.call());
    for (std::size_t e = 0; e < 21; ++e) {
      const std::size_t row = e / 3 % 3, column = e % 3;
      const double expected = column > row ? 0 : 1 / static_cast<double>(row + 1);
      EXPECT_NEAR(ours.get(1, e), expected, 2e-3) << e;
      EXPECT_EQ(ours.get(1, e), theirs.get(1, e)) << e;
    }
  }
  const Cost cost = kernel(kernel_named("softmax")).cost({.dims = {7, 3, 1}});
  EXPECT_EQ(cost.flop, 5 * (6 + 6 + 1));
  EXPECT_EQ(cost.bytes, 4 * (13 + 21));
}

TEST(Catalogue, KnownResults) {
  const auto expect = [](Launch& launch, std::vector<std::vector<double>> inputs,
                         std::vector<std::vector<double>> outputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::size_t e = 0; e < inputs[i].size(); ++e) launch.set(i, e, inputs[i][e]);
    Launch theirs(launch);
    launch.run(1);
    theirs.body().reference(theirs.call());
    ASSERT_EQ(outputs.size(), launch.outputs().size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      for (std::size_t e = 0; e < outputs[i].size(); ++e)
        for (Launch* each : {&launch, &theirs})
          EXPECT_NEAR(each->get(launch.outputs()[i], e), outputs[i][e], 2e-6) << launch.body().name << ' ' << e;
  };
  Launch sums("sum_rows", {.dims = {2, 2, 2, 3}, .scalars = {0.5f}});
  expect(sums, {{1, 2, 100, 3, 4, 100, 5, 6, 100, 7, 8}}, {{2, 3, 6, 7}});
  Launch bias("add", {.dims = {2, 2, 1}, .scalars = {2, -1}});
  expect(bias, {{1, 2, 3, 4}, {10, 20}}, {{-8, -16, -4, -12}});
  Launch heads("transpose", {.type = ElementType::i32, .dims = {1, 2, 3, 2}});
  expect(heads, {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, {{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}});
  Launch softmax("softmax_backward", {.dims = {1, 2}});
  expect(softmax, {{0.25, 0.75}, {4, 8}}, {{-0.75, 0.75}});
  Launch gelu("gelu_backward", {.dims = {3}});
  expect(gelu, {{0, 1, -1}, {3, 1, 2}}, {{1.5, 1.0833154706, 2 * -0.0833154706}});
  // x = 1, 3: mean 2, deviation 2 with an epsilon of 3; by the normal row (1, 0), so by_mean 1/2, by_deviation -1/4.
  Launch norm("layer_norm_backward", {.dims = {1, 2}, .scalars = {3}});
  expect(norm, {{1, 3}, {0.5, 1}, {2, 0}}, {{(1 - 0.5 - 0.125) / 2, (-0.5 + 0.125) / 2}, {2, 0.5}});
  Launch grad("layer_norm_grad", {.dims = {2, 1}});
  expect(grad, {{3, 5}, {10, 1}, {1, 0.5, 1, 0.25}}, {{11}, {11}});
  Launch adam("adam", {.type = ElementType::f16, .dims = {1}, .scalars = {0.5f, 0.5f, 0.75f, 1.0f}});
  expect(adam, {{4}, {10}, {2}, {0}}, {{9.5}, {3}, {4}});
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
  const Cost batch =
      kernel(kernel_named("gemm")).cost({.type = ElementType::f16, .dims = {2, 3, 5, gemm_flags(true, false, 7)}});
  EXPECT_EQ(batch.flop, 7 * gemm.flop);
  EXPECT_EQ(batch.bytes, 7 * gemm.bytes);
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
  EXPECT_EQ(names.size(), 46u);
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

}  // namespace
}  // namespace weir
