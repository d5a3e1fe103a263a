// Softmax over the columns of each row, with the row's largest value subtracted first.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  float* const row = scratch(columns);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      load_floats(operand<const T>(call, 0) + r * columns, row, columns);
      const float largest = *std::max_element(row, row + columns);
      for (std::int64_t c = 0; c < columns; ++c) row[c] = std::exp(row[c] - largest);
      const float total = sum_of(columns, [row](std::int64_t c) { return row[c]; });
      for (std::int64_t c = 0; c < columns; ++c) row[c] /= total;
      store_floats(row, operand<T>(call, 1) + r * columns, columns);
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const in = operand<const T>(call, 0) + r * columns;
      T* const out = operand<T>(call, 1) + r * columns;
      double largest = to_float(in[0]), total = 0;
      for (std::int64_t c = 1; c < columns; ++c) largest = std::max<double>(largest, to_float(in[c]));
      for (std::int64_t c = 0; c < columns; ++c) total += std::exp(to_float(in[c]) - largest);
      for (std::int64_t c = 0; c < columns; ++c) out[c] = from_double<T>(std::exp(to_float(in[c]) - largest) / total);
    }
  });
}

}  // namespace

Kernel softmax() {
  return {
      .name = "softmax",
      .summary = "softmax of each row",
      .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
      .extents = [](const KernelShape& shape) -> std::array<std::int64_t, kMaxOperands> {
        return {shape.dims[0] * shape.dims[1], shape.dims[0] * shape.dims[1]};
      },
      // Nominal: compare, subtract, exp, add, divide.
      .cost =
          [](const KernelShape& shape) {
            const double count = static_cast<double>(shape.dims[0]) * static_cast<double>(shape.dims[1]);
            return Cost{5 * count, 2 * count * element_bytes(shape)};
          },
      .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
      .run_block = run_block,
      .reference = reference,
      // exp is good to 2 units in the last place (4 roundings) in numerator and sum, the sum and the division add 4,
      // and the subtraction adds one per unit of distance from the largest value: 8, beyond which results vanish.
      .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 4 + 4 + 4 + 8); },
      .geometry = [](const KernelShape& shape) { return row_geometry(shape.dims[0], shape.dims[1]); }};
}

}  // namespace weir::catalogue
