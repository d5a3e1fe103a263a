// Writes rows to indexed places. Moves bits of any element type. Indices must be unique, because blocks run in any
// order; those outside of the output are skipped.
#include <cstring>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [count, width, out_rows, unused] = call.shape.dims;
  const Range range = block_range(count, rows_per_block(width), block);
  const auto row_bytes = static_cast<std::size_t>(width) * size_of(call.shape.type);
  const auto* const index = operand<const std::int32_t>(call, 1);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    if (index[i] < 0 || index[i] >= out_rows) continue;
    std::memcpy(operand<std::byte>(call, 2) + static_cast<std::size_t>(index[i]) * row_bytes,
                operand<const std::byte>(call, 0) + static_cast<std::size_t>(i) * row_bytes, row_bytes);
  }
}

void reference(const KernelCall& call) {
  with_bits(call.shape.type, [&]<class Bits>(Bits*) {
    const auto [count, width, out_rows, unused] = call.shape.dims;
    for (std::int64_t element = 0; element < count * width; ++element) {
      const std::int64_t row = operand<const std::int32_t>(call, 1)[element / width];
      if (0 <= row && row < out_rows)
        operand<Bits>(call, 2)[row * width + element % width] = operand<const Bits>(call, 0)[element];
    }
  });
}

}  // namespace

Kernel scatter() {
  return {.name = "scatter",
          .summary = "rows written to the places that an index names",
          .operands = [](const KernelShape&) -> std::string_view { return "rrp"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [count, width, out_rows, unused] = shape.dims;
            return {count * width, count, out_rows * width};
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
