// Index of the largest value of each row, the lowest index if there are several. NaN is lower than everything.
#include "kernel/body.h"
#include "kernel/ranked.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      const T* const row = operand<const T>(call, 0) + r * columns;
      unsigned long long best = 0;
      for (std::int64_t c = 0; c < columns; ++c) best = std::max(best, ranked(to_float(row[c]), c));
      operand<std::int32_t>(call, 1)[r] = index_of(best);
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t best = 0;
      for (std::int64_t c = 1; c < columns; ++c) {
        const float value = to_float(operand<const T>(call, 0)[r * columns + c]);
        const float largest = to_float(operand<const T>(call, 0)[r * columns + best]);
        if (value > largest || (std::isnan(largest) && !std::isnan(value))) best = c;
      }
      operand<std::int32_t>(call, 1)[r] = static_cast<std::int32_t>(best);
    }
  });
}

}  // namespace

Kernel arg_max() {
  return {.name = "arg_max",
          .summary = "index of each row's largest value",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0] * shape.dims[1], shape.dims[0]}; },
          .cost =
              [](const KernelShape& shape) {
                const auto rows = shape.dim(0);
                const double count = rows * shape.dim(1);
                return Cost{count, count * element_bytes(shape) + 4 * rows};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
          .run_block = run_block,
          .reference = reference,
          .geometry = [](const KernelShape& shape) { return row_geometry(shape.dims[0], shape.dims[1]); },
          .types = "ti"};
}

}  // namespace weir::catalogue
