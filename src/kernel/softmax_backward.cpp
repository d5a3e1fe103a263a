// Gradient of softmax: from probabilities p and the loss gradient dp by them to the gradient by the scores.
#include <cmath>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  float* const p = scratch(2 * columns);
  float* const dp = p + columns;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      load_floats(operand<const T>(call, 0) + r * columns, p, columns);
      load_floats(operand<const T>(call, 1) + r * columns, dp, columns);
      const float mean = sum_of(columns, [=](std::int64_t c) { return p[c] * dp[c]; });
      for (std::int64_t c = 0; c < columns; ++c) p[c] *= dp[c] - mean;
      store_floats(p, operand<T>(call, 2) + r * columns, columns);
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const p = operand<const T>(call, 0) + r * columns;
      const T* const dp = operand<const T>(call, 1) + r * columns;
      double mean = 0;
      for (std::int64_t c = 0; c < columns; ++c) mean += static_cast<double>(to_float(p[c])) * to_float(dp[c]);
      for (std::int64_t c = 0; c < columns; ++c)
        operand<T>(call, 2)[r * columns + c] = from_double<T>(to_float(p[c]) * (to_float(dp[c]) - mean));
    }
  });
}

// If one column has all of the weight, dp and its mean cancel completely and only the rounding of dp remains.
double scale(const KernelCall& call) {
  const std::int64_t count = call.shape.dims[0] * call.shape.dims[1];
  double squares = 0;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double term = to_float(operand<const T>(call, 0)[i]) * to_float(operand<const T>(call, 1)[i]);
      squares += term * term;
    }
  });
  return std::sqrt(squares / static_cast<double>(count));
}

}  // namespace

Kernel softmax_backward() {
  return {
      .name = "softmax_backward",
      .summary = "gradient of softmax by its scores",
      .operands = [](const KernelShape&) -> std::string_view { return "rrw"; },
      .extents = [](const KernelShape& shape) -> Extents {
        const std::int64_t count = shape.dims[0] * shape.dims[1];
        return {count, count, count};
      },
      // Two for the sum, two for its use.
      .cost =
          [](const KernelShape& shape) {
            const double count = shape.dim(0) * shape.dim(1);
            return Cost{4 * count, 3 * count * element_bytes(shape)};
          },
      .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
      .run_block = run_block,
      .reference = reference,
      // The compensated sum of rounded products needs 5, the difference and the last product one each. dp and its mean
      // may cancel to an eighth of the size of other results. Rows differ: if one column has all of the weight (the
      // first rows of a causal mask), results are up to `columns` times their usual size.
      .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, (5 + 2) * 8 + shape.dim(1)); },
      .scale = scale,
      .geometry = [](const KernelShape& shape) { return row_geometry(shape.dims[0], shape.dims[1]); }};
}

}  // namespace weir::catalogue
