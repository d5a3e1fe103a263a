// Sums of squares of the parts of a vector, for a norm. One sum per part and no total, because a device adds up
// millions of elements faster in many places than in one. The order of additions is fixed everywhere.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// Parts begin at multiples of 8 elements: aligned for wide loads of any type. The last ones may be shorter or empty.
Range part_of(const KernelShape& shape, std::uint32_t part) {
  const std::int64_t size = divide_up(divide_up(shape.dims[0], shape.dims[1]), 8) * 8;
  return block_range(shape.dims[0], size, part);
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const Range range = part_of(call.shape, block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const in = operand<const T>(call, 0) + range.begin;
    operand<float>(call, 1)[block] = sum_of(range.size(), [&](std::int64_t i) {
      const float x = to_float(in[i]);
      return x * x;
    });
  });
}

void reference(const KernelCall& call) {
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::uint32_t part = 0; part < static_cast<std::uint32_t>(call.shape.dims[1]); ++part) {
      const Range range = part_of(call.shape, part);
      double sum = 0;
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const double x = to_float(operand<const T>(call, 0)[i]);
        sum += x * x;
      }
      operand<float>(call, 1)[part] = static_cast<float>(sum);
    }
  });
}

}  // namespace

Kernel square_sum() {
  return {.name = "square_sum",
          .summary = "sums of squares, part by part",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[1]}; },
          .cost =
              [](const KernelShape& shape) {
                return Cost{2 * shape.dim(0), shape.dim(0) * element_bytes(shape) + 4 * shape.dim(1)};
              },
          .blocks = [](const KernelShape& shape) { return static_cast<std::uint32_t>(shape.dims[1]); },
          .run_block = run_block,
          .reference = reference,
          // Results are f32. Terms have one sign: a square rounds once, a compensated sum twice, and the results of 256
          // threads are added in 12 rounds.
          .tolerance = [](const KernelShape&) { return storage_tolerance(ElementType::f32, 15); },
          .geometry = [](const KernelShape& shape) { return Geometry{grid_of(shape.dims[1]), kThreads}; },
          .types = "tf"};
}

}  // namespace weir::catalogue
