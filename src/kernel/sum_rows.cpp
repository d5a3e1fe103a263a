// Sums of rows that are `stride` apart, group by group: for pooling, and for adding up the results of parallel parts.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// A block is several small groups, or some columns of a large one.
struct Split {
  explicit Split(const KernelShape& shape)
      : groups(std::max<std::int64_t>(1, kBlockElements / std::max<std::int64_t>(1, shape.dims[1] * shape.dims[2]))),
        columns(std::max<std::int64_t>(256, kBlockElements / std::max<std::int64_t>(1, shape.dims[1]))),
        across(block_count(shape.dims[2], columns)) {}
  std::int64_t groups, columns;
  std::uint32_t across;
};

std::uint32_t blocks(const KernelShape& shape) {
  const Split split(shape);
  return block_count(shape.dims[0], split.groups) * split.across;
}

void run_block(const KernelCall& call, std::uint32_t block) {
  constexpr std::int64_t kLanes = 256;
  const auto [groups, parts, count, stride] = call.shape.dims;
  const Split split(call.shape);
  const Range group = block_range(groups, split.groups, block / split.across);
  const Range columns = block_range(count, split.columns, block % split.across);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t g = group.begin; g < group.end; ++g)
      for (std::int64_t first = columns.begin; first < columns.end; first += kLanes) {
        const std::int64_t lanes = std::min(kLanes, columns.end - first);
        RunningSum sums[kLanes];
        for (std::int64_t p = 0; p < parts; ++p) {
          const T* const row = operand<const T>(call, 0) + (g * parts + p) * stride + first;
          for (std::int64_t i = 0; i < lanes; ++i) sums[i].add(to_float(row[i]));
        }
        T* const out = operand<T>(call, 1) + g * count + first;
        for (std::int64_t i = 0; i < lanes; ++i) out[i] = from_float<T>(call.shape.scalars[0] * sums[i].value());
      }
  });
}

void reference(const KernelCall& call) {
  const auto [groups, parts, count, stride] = call.shape.dims;
  std::vector<double> sums(static_cast<std::size_t>(count));
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t g = 0; g < groups; ++g) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t p = 0; p < parts; ++p)
        for (std::int64_t i = 0; i < count; ++i)
          sums[static_cast<std::size_t>(i)] += to_float(operand<const T>(call, 0)[(g * parts + p) * stride + i]);
      for (std::int64_t i = 0; i < count; ++i)
        operand<T>(call, 1)[g * count + i] = from_double<T>(call.shape.scalars[0] * sums[static_cast<std::size_t>(i)]);
    }
  });
}

// Divided as in sum_rows.cuh: 4 columns per lane, and 8 threads down each if there are many parts.
Geometry geometry(const KernelShape& shape) {
  const std::int64_t lanes = shape.dims[1] >= 32 ? kThreads / 8 : kThreads;
  return {grid_of(shape.dims[0] * divide_up(shape.dims[2], 4 * lanes)), kThreads};
}

}  // namespace

Kernel sum_rows() {
  return {
      .name = "sum_rows",
      .summary = "scaled sums of the rows of each group",
      .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
      .extents = [](const KernelShape& shape) -> Extents {
        const auto [groups, parts, count, stride] = shape.dims;
        return {(groups * parts - 1) * stride + count, groups * count};
      },
      .cost =
          [](const KernelShape& shape) {
            const auto out = shape.dim(0) * shape.dim(2);
            const double in = out * shape.dim(1);
            return Cost{in + out, (in + out) * element_bytes(shape)};
          },
      .blocks = blocks,
      .run_block = run_block,
      .reference = reference,
      // As in reduce: 8 for compensated sums, sqrt(terms) for plain ones of random signs. The scale rounds once.
      .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 9 + std::sqrt(shape.dim(1))); },
      .geometry = geometry};
}

}  // namespace weir::catalogue
