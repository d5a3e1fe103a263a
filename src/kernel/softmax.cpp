// Softmax over the columns of each row, with the row's largest value subtracted first. Causal: row r of each square
// sees the columns up to r; the others become 0.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

std::int64_t visible_columns(const KernelShape& shape, std::int64_t row) {
  const std::int64_t columns = shape.dims[1];
  return shape.dims[2] != 0 ? row % columns + 1 : columns;
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, is_causal, unused] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  float* const row = scratch(columns);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      const std::int64_t visible = visible_columns(call.shape, r);
      T* const out = operand<T>(call, 1) + r * columns;
      load_floats(operand<const T>(call, 0) + r * columns, row, visible);
      const float largest = *std::max_element(row, row + visible);
      for (std::int64_t c = 0; c < visible; ++c) row[c] = std::exp(row[c] - largest);
      const float total = sum_of(visible, [row](std::int64_t c) { return row[c]; });
      for (std::int64_t c = 0; c < visible; ++c) row[c] /= total;
      store_floats(row, out, visible);
      std::fill(out + visible, out + columns, T{});
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, is_causal, unused] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const in = operand<const T>(call, 0) + r * columns;
      T* const out = operand<T>(call, 1) + r * columns;
      const std::int64_t last = is_causal != 0 ? r % columns : columns - 1;
      double largest = to_float(in[0]), total = 0;
      for (std::int64_t c = 1; c <= last; ++c) largest = std::max<double>(largest, to_float(in[c]));
      for (std::int64_t c = 0; c <= last; ++c) total += std::exp(to_float(in[c]) - largest);
      for (std::int64_t c = 0; c < columns; ++c)
        out[c] = from_double<T>(c <= last ? std::exp(to_float(in[c]) - largest) / total : 0.0);
    }
  });
}

// Elements that are computed: all, or the triangle of each square.
double visible_count(const KernelShape& shape) {
  const auto rows = shape.dim(0), columns = shape.dim(1);
  if (shape.dims[2] == 0) return rows * columns;
  const double squares = std::floor(rows / columns), left = rows - squares * columns;
  return squares * columns * (columns + 1) / 2 + left * (left + 1) / 2;
}

}  // namespace

Kernel softmax() {
  return {
      .name = "softmax",
      .summary = "softmax of each row",
      .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
      .extents = [](const KernelShape& shape) -> Extents {
        return {shape.dims[0] * shape.dims[1], shape.dims[0] * shape.dims[1]};
      },
      // Nominal: compare, subtract, exp, add, divide.
      .cost =
          [](const KernelShape& shape) {
            const double count = shape.dim(0) * shape.dim(1);
            const double visible = visible_count(shape);
            return Cost{5 * visible, (visible + count) * element_bytes(shape)};
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
