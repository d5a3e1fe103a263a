// Continuous batching: every active slot has produced a token; a request that has produced its last one frees its slot.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const Range range = block_range(call.shape.dims[0], kBlockElements, block);
  for (std::int64_t s = range.begin; s < range.end; ++s) {
    const std::int32_t length = operand<const std::int32_t>(call, 0)[s];
    const std::int32_t remaining = operand<const std::int32_t>(call, 1)[s];
    const bool is_active = length > 0 && remaining > 0;
    operand<std::int32_t>(call, 2)[s] = is_active && remaining > 1 ? length + 1 : 0;
    operand<std::int32_t>(call, 3)[s] = is_active ? remaining - 1 : 0;
    operand<std::int32_t>(call, 4)[s] = is_active ? 1 : 0;
  }
}

void reference(const KernelCall& call) {
  for (std::int64_t s = 0; s < call.shape.dims[0]; ++s) {
    std::int32_t length = operand<const std::int32_t>(call, 0)[s], produced = 0;
    std::int32_t remaining = operand<const std::int32_t>(call, 1)[s];
    if (length <= 0 || remaining <= 0) {
      length = remaining = 0;
    } else {
      produced = 1;
      length += 1;
      remaining -= 1;
      if (remaining == 0) length = 0;
    }
    operand<std::int32_t>(call, 2)[s] = length;
    operand<std::int32_t>(call, 3)[s] = remaining;
    operand<std::int32_t>(call, 4)[s] = produced;
  }
}

}  // namespace

Kernel advance() {
  return {.name = "advance",
          .summary = "counts a token for every active slot and frees those that are done",
          .operands = [](const KernelShape&) -> std::string_view { return "rrwww"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const std::int64_t slots = shape.dims[0];
            return {slots, slots, slots, slots, slots};
          },
          .cost = [](const KernelShape& shape) { return Cost{0, 20 * shape.dim(0)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
          .run_block = run_block,
          .reference = reference,
          .geometry =
              [](const KernelShape& shape) { return Geometry{grid_of(divide_up(shape.dims[0], kThreads)), kThreads}; },
          .types = "iiiii"};
}

}  // namespace weir::catalogue
