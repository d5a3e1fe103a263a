// The gradient of a table whose rows were gathered: adds up the gradients of each row in the order of the indices on
// every device, without atomics. Rows that were not gathered get 0 (or keep their contents); indices outside of the
// table are ignored.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// Sums of a block's rows are on the stack, 32 KiB of them: each block reads all indices once.
constexpr std::int64_t kElements = 4096;

std::int64_t rows_of(std::int64_t width) { return std::max<std::int64_t>(1, kElements / width); }

// Kahan sums as in RunningSum, in two arrays so that they vectorise.
template <class T>
void add_row(const T* from, float* sums, float* lost, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) {
    const float corrected = to_float(from[c]) - lost[c], next = sums[c] + corrected;
    lost[c] = (next - sums[c]) - corrected;
    sums[c] = next;
  }
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [count, width, rows, unused] = call.shape.dims;
  const float beta = call.shape.scalars[0];
  const Range range = block_range(rows, rows_of(width), block);
  const auto* const index = operand<const std::int32_t>(call, 0);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const dy = operand<const T>(call, 1);
    // In one pass unless a row is longer than the array.
    for (std::int64_t first = 0; first < width; first += kElements) {
      const std::int64_t columns = std::min(kElements, width - first);
      float sums[kElements] = {}, lost[kElements] = {};
      for (std::int64_t i = 0; i < count; ++i) {
        if (index[i] < range.begin || index[i] >= range.end) continue;
        const std::int64_t row = (index[i] - range.begin) * columns;
        add_row(dy + i * width + first, sums + row, lost + row, columns);
      }
      for (std::int64_t e = 0; e < range.size() * columns; ++e) {
        T& out = operand<T>(call, 2)[(range.begin + e / columns) * width + first + e % columns];
        const float total = sums[e] - lost[e];
        out = from_float<T>(beta == 0 ? total : beta * to_float(out) + total);
      }
    }
  });
}

void reference(const KernelCall& call) {
  const auto [count, width, rows, unused] = call.shape.dims;
  const double beta = call.shape.scalars[0];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    T* const out = operand<T>(call, 2);
    std::vector<double> sums(static_cast<std::size_t>(rows * width), 0.0);
    if (beta != 0)
      for (std::size_t e = 0; e < sums.size(); ++e) sums[e] = beta * to_float(out[e]);
    for (std::int64_t e = 0; e < count * width; ++e) {
      const std::int64_t row = operand<const std::int32_t>(call, 0)[e / width];
      if (0 <= row && row < rows)
        sums[static_cast<std::size_t>(row * width + e % width)] += to_float(operand<const T>(call, 1)[e]);
    }
    for (std::size_t e = 0; e < sums.size(); ++e) out[e] = from_double<T>(sums[e]);
  });
}

}  // namespace

Kernel embedding_grad() {
  return {
      .name = "embedding_grad",
      .summary = "the gradient of a table whose rows were gathered",
      // indices, gradients of the gathered rows, gradient of the table
      .operands = [](const KernelShape& shape) -> std::string_view { return shape.scalars[0] != 0 ? "rru" : "rrw"; },
      .extents = [](const KernelShape& shape) -> Extents {
        const auto [count, width, rows, unused] = shape.dims;
        return {count, count * width, rows * width};
      },
      .cost =
          [](const KernelShape& shape) {
            const auto count = shape.dim(0), width = shape.dim(1);
            const double out_passes = shape.scalars[0] != 0 ? 2 : 1;
            return Cost{count * width, (count + out_passes * shape.dim(2)) * width * element_bytes(shape) + 4 * count};
          },
      .blocks = [](const KernelShape& shape) { return block_count(shape.dims[2], rows_of(shape.dims[1])); },
      .run_block = run_block,
      .reference = reference,
      // As in layer_norm_grad. If all indices name one row, all others are 0: then the scale of the errors, the rms of
      // the results, is smaller than that row's values.
      .tolerance =
          [](const KernelShape& shape) { return storage_tolerance(shape.type, 8 + 4 * std::sqrt(shape.dim(0))); },
      // embedding_grad.cuh: 32 rows of the table per block.
      .geometry = [](const KernelShape& shape) { return Geometry{grid_of(divide_up(shape.dims[2], 32)), kThreads}; },
      .types = "itt"};
}

}  // namespace weir::catalogue
