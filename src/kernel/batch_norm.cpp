// Batch normalisation of inference: each column by the mean and the variance that were learned for it, then gamma and
// beta. Rows are pixels, columns are channels.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  float* const scale = scratch(columns);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const mean = operand<const T>(call, 1);
    const T* const variance = operand<const T>(call, 2);
    const T* const gamma = operand<const T>(call, 3);
    const T* const beta = operand<const T>(call, 4);
    for (std::int64_t c = 0; c < columns; ++c)
      scale[c] = to_float(gamma[c]) / std::sqrt(to_float(variance[c]) + call.shape.scalars[0]);
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      const T* const in = operand<const T>(call, 0) + r * columns;
      T* const out = operand<T>(call, 5) + r * columns;
      for (std::int64_t c = 0; c < columns; ++c)
        out[c] = from_float<T>((to_float(in[c]) - to_float(mean[c])) * scale[c] + to_float(beta[c]));
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const auto value = [&](int index, std::int64_t at) {
      return static_cast<double>(to_float(operand<const T>(call, index)[at]));
    };
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        const double deviation = std::sqrt(value(2, c) + static_cast<double>(call.shape.scalars[0]));
        operand<T>(call, 5)[r * columns + c] =
            from_double<T>((value(0, r * columns + c) - value(1, c)) / deviation * value(3, c) + value(4, c));
      }
  });
}

}  // namespace

Kernel batch_norm() {
  return {.name = "batch_norm",
          .summary = "batch normalisation with given means and variances",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrrrw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [rows, columns, unused0, unused1] = shape.dims;
            return {rows * columns, columns, columns, columns, columns, rows * columns};
          },
          // Per element: minus the mean, times the scale, plus beta. The scale of a column is made once.
          .cost =
              [](const KernelShape& shape) {
                const auto columns = shape.dim(1);
                const double count = shape.dim(0) * columns;
                return Cost{3 * count, (2 * count + 4 * columns) * element_bytes(shape)};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
          .run_block = run_block,
          .reference = reference,
          // Six operations round once each; the mean and beta may each cancel three quarters of what is before them.
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 6 * 4 * 4); },
          .geometry = [](const KernelShape& shape) { return indexed_geometry(shape.dims[0], shape.dims[1]); }};
}

}  // namespace weir::catalogue
