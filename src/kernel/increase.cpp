// Adds a constant to integers: lengths and positions that advance.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

std::int32_t increased(std::int32_t value, std::int64_t by) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(by));
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const Range range = block_range(call.shape.dims[0], kBlockElements, block);
  for (std::int64_t i = range.begin; i < range.end; ++i)
    operand<std::int32_t>(call, 1)[i] = increased(operand<const std::int32_t>(call, 0)[i], call.shape.dims[1]);
}

void reference(const KernelCall& call) {
  std::transform(operand<const std::int32_t>(call, 0), operand<const std::int32_t>(call, 0) + call.shape.dims[0],
                 operand<std::int32_t>(call, 1), [&](std::int32_t value) {
                   return static_cast<std::int32_t>(static_cast<std::int64_t>(value) + call.shape.dims[1]);
                 });
}

}  // namespace

Kernel increase() {
  return {.name = "increase",
          .summary = "integers made larger by a constant",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[0]}; },
          .cost = [](const KernelShape& shape) { return Cost{shape.dim(0), 8 * shape.dim(0)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
          .run_block = run_block,
          .reference = reference,
          .geometry = element_geometry,
          .types = "ii"};
}

}  // namespace weir::catalogue
