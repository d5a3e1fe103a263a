// Gradients of layer normalisation by gamma and beta: sums over all rows, with the rows' means and 1 / deviations from
// layer_norm_backward. The order of additions is fixed on every device.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

constexpr std::int64_t kColumnsPerBlock = 256;

void run_block(const KernelCall& call, std::uint32_t block) {
  const std::int64_t rows = call.shape.dims[0], columns = call.shape.dims[1];
  const Range range = block_range(columns, kColumnsPerBlock, block);
  const float* const stats = operand<const float>(call, 2);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    RunningSum by_gamma[kColumnsPerBlock], by_beta[kColumnsPerBlock];
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const in = operand<const T>(call, 0) + r * columns + range.begin;
      const T* const dy = operand<const T>(call, 1) + r * columns + range.begin;
      const float mean = stats[2 * r], inverse = stats[2 * r + 1];
      for (std::int64_t c = 0; c < range.size(); ++c) {
        by_gamma[c].add(to_float(dy[c]) * ((to_float(in[c]) - mean) * inverse));
        by_beta[c].add(to_float(dy[c]));
      }
    }
    for (std::int64_t c = 0; c < range.size(); ++c) {
      operand<T>(call, 3)[range.begin + c] = from_float<T>(by_gamma[c].value());
      operand<T>(call, 4)[range.begin + c] = from_float<T>(by_beta[c].value());
    }
  });
}

void reference(const KernelCall& call) {
  const std::int64_t rows = call.shape.dims[0], columns = call.shape.dims[1];
  std::vector<double> by_gamma(static_cast<std::size_t>(columns), 0.0), by_beta(by_gamma);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const float* const stats = operand<const float>(call, 2) + i / columns * 2;
      const auto column = static_cast<std::size_t>(i % columns);
      const double dy = to_float(operand<const T>(call, 1)[i]);
      by_beta[column] += dy;
      by_gamma[column] += dy * (to_float(operand<const T>(call, 0)[i]) - static_cast<double>(stats[0])) * stats[1];
    }
    for (std::size_t c = 0; c < by_gamma.size(); ++c) {
      operand<T>(call, 3)[c] = from_double<T>(by_gamma[c]);
      operand<T>(call, 4)[c] = from_double<T>(by_beta[c]);
    }
  });
}

}  // namespace

Kernel layer_norm_grad() {
  return {.name = "layer_norm_grad",
          .summary = "gradients of layer normalisation by gamma and beta",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrww"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [rows, columns, unused0, unused1] = shape.dims;
            return {rows * columns, rows * columns, 2 * rows, columns, columns};
          },
          .cost =
              [](const KernelShape& shape) {
                const auto rows = shape.dim(0), columns = shape.dim(1);
                return Cost{5 * rows * columns, 2 * (rows * columns + columns) * element_bytes(shape) + 8 * rows};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[1], kColumnsPerBlock); },
          .run_block = run_block,
          .reference = reference,
          // As in reduce: 8 for compensated sums, sqrt(terms) for plain ones of random signs. Each term of gamma's sum
          // rounds three times, which also adds up randomly.
          .tolerance =
              [](const KernelShape& shape) { return storage_tolerance(shape.type, 8 + 4 * std::sqrt(shape.dim(0))); },
          // layer_norm_grad.cuh: 16 columns x 64 row lanes.
          .geometry = [](const KernelShape& shape) { return Geometry{grid_of(divide_up(shape.dims[1], 16)), 1024}; },
          .types = "ttftt"};
}

}  // namespace weir::catalogue
