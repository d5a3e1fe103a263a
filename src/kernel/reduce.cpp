// Sums of a matrix along one axis. The order of additions is fixed on every device: results repeat bit for bit.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

constexpr std::int64_t kColumnsPerBlock = 256;

bool sums_rows(const KernelShape& shape) { return shape.dims[2] == 1; }

std::uint32_t blocks(const KernelShape& shape) {
  return sums_rows(shape) ? block_count(shape.dims[0], rows_per_block(shape.dims[1]))
                          : block_count(shape.dims[1], kColumnsPerBlock);
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const std::int64_t rows = call.shape.dims[0], columns = call.shape.dims[1];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const in = operand<const T>(call, 0);
    T* const out = operand<T>(call, 1);
    if (sums_rows(call.shape)) {
      const Range range = block_range(rows, rows_per_block(columns), block);
      for (std::int64_t r = range.begin; r < range.end; ++r)
        out[r] = from_float<T>(sum_of(columns, [&](std::int64_t c) { return to_float(in[r * columns + c]); }));
      return;
    }
    const Range range = block_range(columns, kColumnsPerBlock, block);
    RunningSum sums[kColumnsPerBlock];
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < range.size(); ++c) sums[c].add(to_float(in[r * columns + range.begin + c]));
    for (std::int64_t c = 0; c < range.size(); ++c) out[range.begin + c] = from_float<T>(sums[c].value());
  });
}

void reference(const KernelCall& call) {
  const std::int64_t rows = call.shape.dims[0], columns = call.shape.dims[1];
  std::vector<double> sums(static_cast<std::size_t>(sums_rows(call.shape) ? rows : columns), 0.0);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        sums[static_cast<std::size_t>(sums_rows(call.shape) ? r : c)] +=
            to_float(operand<const T>(call, 0)[r * columns + c]);
    for (std::size_t i = 0; i < sums.size(); ++i) operand<T>(call, 1)[i] = from_double<T>(sums[i]);
  });
}

Geometry geometry(const KernelShape& shape) {
  const std::int64_t rows = shape.dims[0], columns = shape.dims[1];
  if (!sums_rows(shape)) return {grid_of(divide_up(columns, 32)), kThreads};  // reduce.cuh: 32 columns x 8 row lanes
  if (columns <= 128) return {grid_of(divide_up(rows, kThreads / 32)), kThreads};  // a warp per row
  return row_geometry(rows, columns);
}

}  // namespace

Kernel reduce() {
  return {.name = "reduce",
          .summary = "sums along one axis of a matrix",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents {
            return {shape.dims[0] * shape.dims[1], sums_rows(shape) ? shape.dims[0] : shape.dims[1]};
          },
          .cost =
              [](const KernelShape& shape) {
                const double count = shape.dim(0) * shape.dim(1);
                const auto sums = static_cast<double>(sums_rows(shape) ? shape.dims[0] : shape.dims[1]);
                return Cost{count, (count + sums) * element_bytes(shape)};
              },
          .blocks = blocks,
          .run_block = run_block,
          .reference = reference,
          // Weir's sums are compensated and need 8; sqrt(terms) is what a plain sum of random signs may add, which
          // allows other devices to use one.
          .tolerance =
              [](const KernelShape& shape) {
                const std::int64_t terms = shape.dims[sums_rows(shape) ? 1 : 0];
                return storage_tolerance(shape.type, 8 + std::sqrt(static_cast<double>(terms)));
              },
          .geometry = geometry};
}

}  // namespace weir::catalogue
