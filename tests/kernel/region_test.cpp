// Regions: how operations pack, what they compute, what is refused, the kernels that do the same one by one, and the
// source that compilers are given.
#include "kernel/region.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "kernel/launch.h"
#include "kernel/region_source.h"

namespace weir {
namespace {

using enum RegionOp;

std::int64_t packed(std::initializer_list<RegionOp> ops) { return region_ops(ops); }

KernelShape shape_of(std::int64_t rows, std::int64_t columns, std::initializer_list<RegionOp> ops,
                     std::array<float, kMaxScalars> scalars, ElementType type = ElementType::f32) {
  return {.type = type, .precision = precision_of(type), .dims = {rows, columns, packed(ops)}, .scalars = scalars};
}

TEST(Region, known_results) {
  Launch launch("region", shape_of(2, 2, {mul, add_row, add_matrix, relu}, {2, -1, 0.5f}));
  const auto set = [&](std::size_t operand, std::vector<double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) launch.set(operand, i, values[i]);
  };
  set(0, {1, 2, 3, 4});
  set(1, {10, 1});
  set(2, {0, 4, 20, -30});
  Launch theirs(launch);
  launch.run(1);
  theirs.body().reference(theirs.call());
  // 2 x - row + matrix / 2, and nothing below zero: -8, 5, 6, -8
  const double expected[] = {0, 5, 6, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(launch.get(3, i), expected[i]) << i;
    EXPECT_EQ(theirs.get(3, i), expected[i]) << i;
  }
}

TEST(Region, nan_passes_through) {
  for (const RegionOp op : {relu, clamp, RegionOp::abs, square, gelu}) {
    Launch launch("region", shape_of(1, 3, {op}, {-1, 1}));
    launch.set(0, 1, std::nan(""));
    launch.run(1);
    EXPECT_TRUE(std::isnan(launch.get(1, 1))) << static_cast<int>(op);
    EXPECT_FALSE(std::isnan(launch.get(1, 0)));
  }
}

TEST(Region, refuses_what_has_no_code) {
  EXPECT_THROW(packed({}), Error);
  EXPECT_THROW(packed({none}), Error);
  EXPECT_THROW(packed({RegionOp::abs, RegionOp::abs, RegionOp::abs, RegionOp::abs, RegionOp::abs, RegionOp::abs,
                       RegionOp::abs, RegionOp::abs, RegionOp::abs}),
               Error);
  EXPECT_THROW(packed({clamp, clamp, mul}), Error);                            // five scalars
  EXPECT_THROW(packed({static_cast<RegionOp>(static_cast<int>(add_matrix) + 1)}), Error);
  for (const std::int64_t hostile : {std::int64_t{0}, std::int64_t{0x7f}, std::int64_t{0x0100}, std::int64_t{-1},
                                     std::int64_t{0x0a0101}}) {
    const KernelShape shape{.dims = {4, 4, hostile}};
    EXPECT_THROW(region_items(shape), Error) << hostile;
    for (const RegionLanguage language : {RegionLanguage::cpp, RegionLanguage::cuda, RegionLanguage::opencl})
      EXPECT_THROW(region_source(shape, language), Error) << hostile;
  }
}

// The same results as the kernels of eager mode, one after the other, but for what those round in between.
TEST(Region, unfused_does_the_same) {
  for (const ElementType type : kFloats) {
    const KernelShape shape = shape_of(9, 130, {mul, add_row, gelu, add_matrix, square}, {1.25f, -1, 0.5f}, type);
    Launch fused("region", shape), eager(fused);
    fused.run(1);
    const std::vector<RegionPart> parts = unfused(shape);
    ASSERT_EQ(parts.size(), 5u);
    void* from = eager.call().operands[0];
    for (const RegionPart& part : parts) {
      const Kernel& body = kernel(kernel_named(part.kernel));
      KernelCall call{.shape = part.shape, .operands = {from}};
      std::size_t next = 1;
      if (part.added != 0) call.operands[next++] = eager.call().operands[static_cast<std::size_t>(part.added)];
      call.operands[next] = from = eager.call().operands[3];
      for (std::uint32_t block = 0; block < body.blocks(part.shape); ++block) body.run_block(call, block);
    }
    EXPECT_LE(fused.error_against(eager), fused.body().tolerance(shape)) << name_of(type);
  }
}

TEST(Region, source_depends_on_operations_alone) {
  for (const RegionLanguage language : {RegionLanguage::cpp, RegionLanguage::cuda, RegionLanguage::opencl}) {
    const std::string source = region_source(shape_of(4, 4, {mul, add_row}, {1, 2}), language);
    EXPECT_EQ(source, region_source(shape_of(400, 7, {mul, add_row}, {3, 4}), language));
    EXPECT_NE(source, region_source(shape_of(4, 4, {mul, add_row, relu}, {1, 2}), language));
    EXPECT_NE(source.find(language == RegionLanguage::opencl ? "WEIR_KERNEL(region)" : kRegionEntry),
              std::string::npos);
    EXPECT_EQ(std::ranges::count(source, '{'), std::ranges::count(source, '}'));
  }
}

}  // namespace
}  // namespace weir
