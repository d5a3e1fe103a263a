// Gradient of layer normalisation by its input. Also stores each row's mean and 1 / deviation for layer_norm_grad.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  const auto width = static_cast<float>(columns);
  float* const row = scratch(2 * columns);
  float* const scaled = row + columns;  // dy * gamma: the gradient by the normalised row
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const gamma = operand<const T>(call, 1);
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      load_floats(operand<const T>(call, 0) + r * columns, row, columns);
      // Shifted by the row's first value, as in layer_norm, to keep the digits of a row far from zero.
      const float shift = row[0];
      for (std::int64_t c = 0; c < columns; ++c) row[c] -= shift;
      const float mean = sum_of(columns, [=](std::int64_t c) { return row[c]; }) / width;
      for (std::int64_t c = 0; c < columns; ++c) row[c] -= mean;
      const float variance = sum_of(columns, [=](std::int64_t c) { return row[c] * row[c]; }) / width;
      const float inverse = 1 / std::sqrt(variance + call.shape.scalars[0]);
      const T* const dy = operand<const T>(call, 2) + r * columns;
      for (std::int64_t c = 0; c < columns; ++c) {
        row[c] *= inverse;
        scaled[c] = to_float(dy[c]) * to_float(gamma[c]);
      }
      const float by_mean = sum_of(columns, [=](std::int64_t c) { return scaled[c]; }) / width;
      const float by_deviation = sum_of(columns, [=](std::int64_t c) { return scaled[c] * row[c]; }) / width;
      for (std::int64_t c = 0; c < columns; ++c) row[c] = (scaled[c] - by_mean - row[c] * by_deviation) * inverse;
      store_floats(row, operand<T>(call, 3) + r * columns, columns);
      operand<float>(call, 4)[2 * r] = shift + mean;
      operand<float>(call, 4)[2 * r + 1] = inverse;
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, unused0, unused1] = call.shape.dims;
  const auto width = static_cast<double>(columns);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const gamma = operand<const T>(call, 1);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const in = operand<const T>(call, 0) + r * columns;
      const T* const dy = operand<const T>(call, 2) + r * columns;
      double mean = 0, variance = 0, sum = 0, product = 0;
      for (std::int64_t c = 0; c < columns; ++c) mean += to_float(in[c]);
      mean /= width;
      for (std::int64_t c = 0; c < columns; ++c) variance += std::pow(to_float(in[c]) - mean, 2);
      const double deviation = std::sqrt(variance / width + static_cast<double>(call.shape.scalars[0]));
      const auto scaled = [&](std::int64_t c) { return static_cast<double>(to_float(dy[c])) * to_float(gamma[c]); };
      const auto normal = [&](std::int64_t c) { return (to_float(in[c]) - mean) / deviation; };
      for (std::int64_t c = 0; c < columns; ++c) {
        sum += scaled(c);
        product += scaled(c) * normal(c);
      }
      for (std::int64_t c = 0; c < columns; ++c)
        operand<T>(call, 3)[r * columns + c] =
            from_double<T>((width * scaled(c) - sum - normal(c) * product) / (width * deviation));
      operand<float>(call, 4)[2 * r] = static_cast<float>(mean);
      operand<float>(call, 4)[2 * r + 1] = static_cast<float>(1 / deviation);
    }
  });
}

}  // namespace

Kernel layer_norm_backward() {
  return {.name = "layer_norm_backward",
          .summary = "gradient of layer normalisation by its input",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrww"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [rows, columns, unused0, unused1] = shape.dims;
            return {rows * columns, columns, rows * columns, rows * columns, 2 * rows};
          },
          // Nominal: five per element for mean and variance, five for the two sums, five for their use.
          .cost =
              [](const KernelShape& shape) {
                const auto rows = shape.dim(0), columns = shape.dim(1);
                return Cost{15 * rows * columns, (3 * rows * columns + columns) * element_bytes(shape) + 8 * rows};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
          .run_block = run_block,
          .reference = reference,
          // Four compensated sums and eight operations round about once each, relative to dy * gamma. The remainder
          // after removing its means may be much smaller: a gradient that follows its row (as in a residual stream)
          // keeps a few percent of it, and 15 million rows of an H200's training step needed 245 roundings. Two columns
          // are the exception: there everything cancels.
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 12 * 64); },
          .geometry = [](const KernelShape& shape) { return row_geometry(shape.dims[0], shape.dims[1]); },
          .types = "ttttf"};
}

}  // namespace weir::catalogue
