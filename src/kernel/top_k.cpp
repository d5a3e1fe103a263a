// The k largest values of each row and their indices, largest first; of equal ones the lowest index first. NaN is lower
// than everything. k is at most 64.
#include "kernel/top_k.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"
#include "kernel/body.h"
#include "kernel/ranked.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rows, columns, k, unused] = call.shape.dims;
  const Range range = block_range(rows, rows_per_block(columns), block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      const T* const row = operand<const T>(call, 0) + r * columns;
      unsigned long long best[kMaxPicks + 1] = {};
      for (std::int64_t c = 0; c < columns; ++c) {
        const unsigned long long value = ranked(to_float(row[c]), c);
        if (value < best[k - 1]) continue;
        std::int64_t at = k - 1;
        for (; at > 0 && best[at - 1] < value; --at) best[at] = best[at - 1];
        best[at] = value;
      }
      for (std::int64_t i = 0; i < k; ++i) {
        operand<T>(call, 1)[r * k + i] = row[index_of(best[i])];
        operand<std::int32_t>(call, 2)[r * k + i] = index_of(best[i]);
      }
    }
  });
}

void reference(const KernelCall& call) {
  const auto [rows, columns, k, unused] = call.shape.dims;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(columns));
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const row = operand<const T>(call, 0) + r * columns;
      const auto is_before = [row](std::int32_t a, std::int32_t b) {
        const float x = to_float(row[a]), y = to_float(row[b]);
        if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
        return x > y || (!(x < y) && a < b);
      };
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), is_before);
      for (std::int64_t i = 0; i < k; ++i) {
        operand<std::int32_t>(call, 2)[r * k + i] = order[static_cast<std::size_t>(i)];
        operand<T>(call, 1)[r * k + i] = row[order[static_cast<std::size_t>(i)]];
      }
    }
  });
}

Extents extents(const KernelShape& shape) {
  const auto [rows, columns, k, unused] = shape.dims;
  if (k < 1 || k > kMaxPicks || k > columns)
    reject(fmt::format("top_k of {} from {} columns", k, columns),
           fmt::format("Pick at least 1 and at most {}.", std::min<std::int64_t>(columns, kMaxPicks)));
  return {rows * columns, rows * k, rows * k};
}

// A warp per short row, else a block; top_k.cuh needs 64 threads with elements, 4 each if they are read in fours.
Geometry geometry(const KernelShape& shape) {
  const std::int64_t rows = shape.dims[0], columns = shape.dims[1];
  if (columns <= kShortRow) return {grid_of(divide_up(rows, kThreads / 32)), kThreads};
  return {grid_of(rows), columns <= 4096 ? kThreads : 1024};
}

}  // namespace

Kernel top_k() {
  return {.name = "top_k",
          .summary = "the k largest values of each row and their indices",
          .operands = [](const KernelShape&) -> std::string_view { return "rww"; },
          .extents = extents,
          .cost =
              [](const KernelShape& shape) {
                const auto rows = shape.dim(0);
                const double count = rows * shape.dim(1);
                const double picked = rows * shape.dim(2);
                return Cost{count, (count + picked) * element_bytes(shape) + 4 * picked};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], rows_per_block(shape.dims[1])); },
          .run_block = run_block,
          .reference = reference,
          .geometry = geometry,
          .types = "tti"};
}

}  // namespace weir::catalogue
