// Rows of a table picked by index. Moves bits of any element type. An index outside of the table gives a row of zeros.
#include <cstring>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [count, width, table_rows, unused] = call.shape.dims;
  const Range range = block_range(count, rows_per_block(width), block);
  const auto row_bytes = static_cast<std::size_t>(width) * size_of(call.shape.type);
  const auto* const index = operand<const std::int32_t>(call, 1);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    std::byte* const to = operand<std::byte>(call, 2) + static_cast<std::size_t>(i) * row_bytes;
    if (index[i] < 0 || index[i] >= table_rows) {
      std::memset(to, 0, row_bytes);
    } else {
      std::memcpy(to, operand<const std::byte>(call, 0) + static_cast<std::size_t>(index[i]) * row_bytes, row_bytes);
    }
  }
}

void reference(const KernelCall& call) {
  with_bits(call.shape.type, [&]<class Bits>(Bits*) {
    const auto [count, width, table_rows, unused] = call.shape.dims;
    for (std::int64_t element = 0; element < count * width; ++element) {
      const std::int64_t row = operand<const std::int32_t>(call, 1)[element / width];
      const bool is_inside = 0 <= row && row < table_rows;
      operand<Bits>(call, 2)[element] =
          is_inside ? operand<const Bits>(call, 0)[row * width + element % width] : Bits{0};
    }
  });
}

}  // namespace

Kernel gather() {
  return {.name = "gather",
          .summary = "rows of a table picked by index",
          .operands = [](const KernelShape&) -> std::string_view { return "rrw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [count, width, table_rows, unused] = shape.dims;
            return {table_rows * width, count, count * width};
          },
          .cost =
              [](const KernelShape& shape) {
                return Cost{0, 2 * shape.dim(0) * shape.dim(1) * element_bytes(shape) + 4 * shape.dim(0)};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
          .run_block = run_block,
          .reference = reference,
          .geometry = [](const KernelShape& shape) { return indexed_geometry(shape.dims[0], shape.dims[1]); },
          .types = "tit"};
}

}  // namespace weir::catalogue
