// Layer normalisation of each row: zero mean and unit variance, then gamma and beta per column.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  const auto width = static_cast<float>(columns);
  float* const row = scratch(columns);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const gamma = operand<const T>(call, 1);
    const T* const beta = operand<const T>(call, 2);
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      load_floats(operand<const T>(call, 0) + r * columns, row, columns);
      // Shifted by the row's first value, to keep the digits of a row far from zero; a constant row gives exactly beta.
      const float shift = row[0];
      for (std::int64_t c = 0; c < columns; ++c) row[c] -= shift;
      const float mean = sum_of(columns, [row](std::int64_t c) { return row[c]; }) / width;
      const float variance =
          sum_of(columns, [row, mean](std::int64_t c) { return (row[c] - mean) * (row[c] - mean); }) / width;
      const float scale = 1 / std::sqrt(variance + call.shape.scalars[0]);
      for (std::int64_t c = 0; c < columns; ++c)
        row[c] = (row[c] - mean) * scale * to_float(gamma[c]) + to_float(beta[c]);
      store_floats(row, operand<T>(call, 3) + r * columns, columns);
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const in = operand<const T>(call, 0) + r * columns;
      double mean = 0, variance = 0;
      for (std::int64_t c = 0; c < columns; ++c) mean += to_float(in[c]);
      mean /= static_cast<double>(columns);
      for (std::int64_t c = 0; c < columns; ++c) variance += std::pow(to_float(in[c]) - mean, 2);
      variance /= static_cast<double>(columns);
      const double deviation = std::sqrt(variance + static_cast<double>(call.shape.scalars[0]));
      for (std::int64_t c = 0; c < columns; ++c) {
        const double normal = (to_float(in[c]) - mean) / deviation;
        operand<T>(call, 3)[r * columns + c] =
            from_double<T>(normal * to_float(operand<const T>(call, 1)[c]) + to_float(operand<const T>(call, 2)[c]));
      }
    }
  });
}

}  // namespace

Kernel layer_norm() {
  return {.name = "layer_norm",
          .summary = "layer normalisation of each row",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [rows, columns, unused0, unused1] = shape.dims;
            return {rows * columns, columns, columns, rows * columns};
          },
          // Nominal: two per element for the mean and its use, three for the variance, three for scale, gamma and beta.
          .cost =
              [](const KernelShape& shape) {
                const auto columns = shape.dim(1);
                const double count = shape.dim(0) * columns;
                return Cost{8 * count, (2 * count + 2 * columns) * element_bytes(shape)};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
          .run_block = run_block,
          .reference = reference,
          // Two compensated sums and six operations round about once each; x is up to 4 deviations from the shift, and
          // beta may cancel three quarters of the result.
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 8 * 4); },
          .geometry = [](const KernelShape& shape) { return row_geometry(shape.dims[0], shape.dims[1]); }};
}

}  // namespace weir::catalogue
