// Occupies a device for a given time and computes nothing: a kernel whose duration is known.
#include "base/clock.h"
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  if (block >= call.shape.dims[1]) return;
  const std::int64_t started_ns = now_ns();
  while (now_ns() - started_ns < call.shape.dims[0]) {
  }
  operand<float>(call, 0)[block] = 1;
}

void reference(const KernelCall& call) { std::fill_n(operand<float>(call, 0), call.shape.dims[1], 1.0f); }

}  // namespace

Kernel spin() {
  return {.name = "spin",
          .summary = "busy-waits for a given time",
          .operands = [](const KernelShape&) -> std::string_view { return "w"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[1]}; },
          .cost = [](const KernelShape& shape) { return Cost{0, 4 * shape.dim(1)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[1], 1); },
          .run_block = run_block,
          .reference = reference,
          .geometry = [](const KernelShape& shape) { return Geometry{grid_of(shape.dims[1]), 32}; },
          .lasts = Lasts::by_time};
}

}  // namespace weir::catalogue
