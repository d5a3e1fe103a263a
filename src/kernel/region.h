// Element-wise regions: a list of operations that devices compile into one kernel when a step is prepared. How a list
// packs into a shape, and the kernels that do the same one after the other. Knows no compiler.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace weir {

// mul and add take the next scalar, clamp the next two (low, high). add_row and add_matrix add the next operand times
// the next scalar: one row for all rows of the region, or a matrix of its size. The numbers are those of ChainOp up to
// square.
enum class RegionOp : std::uint8_t { none, mul, add, abs, clamp, relu, square, gelu, add_row, add_matrix };
inline constexpr int kMaxRegionOps = 8;
inline constexpr int kMaxAdded = 4;  // operands that add_row and add_matrix take; input and output come in addition

// The catalogue's kernel of regions. Its device body is not built ahead.
bool is_region(const Kernel& kernel);

// A region's shape has dims = {rows, columns, packed operations}. Rejects a list that is too long, or needs more
// scalars or operands than a kernel has.
std::int64_t region_ops(std::span<const RegionOp> ops);

// An operation with what it takes: positions in the shape's scalars and in the operands.
struct RegionItem {
  RegionOp op = RegionOp::none;
  int scalar = 0;
  int operand = 0;  // of add_row and add_matrix
};
// The operations of a region by value, because blocks unpack them within samples.
class RegionItems {
 public:
  void add(const RegionItem& item) { items_[count_++] = item; }
  const RegionItem* begin() const { return items_.data(); }
  const RegionItem* end() const { return begin() + count_; }
  std::size_t size() const { return count_; }
  const RegionItem& operator[](std::size_t i) const { return items_[i]; }

 private:
  std::array<RegionItem, kMaxRegionOps> items_{};
  std::size_t count_ = 0;
};
// Rejects a shape that region_ops() did not pack: nothing else may reach a compiler. Allocates nothing.
RegionItems region_items(const KernelShape& shape);

// One of the kernels that do the same one after the other: it reads what the last one wrote, and `added` if that is not
// 0.
struct RegionPart {
  std::string_view kernel;
  KernelShape shape;
  int added = 0;
};
std::vector<RegionPart> unfused(const KernelShape& shape);

// Runs the operations on `count` elements that are in the same row. `added` has a pointer per operand.
using RegionFunction = void (*)(const float* in, float* out, long count, const float* const* added,
                                const float* scalars);
// A block of a region's launch by a compiled function, as Kernel::run_block without one.
void run_region_block(const KernelCall& call, std::uint32_t block, RegionFunction function);

}  // namespace weir
