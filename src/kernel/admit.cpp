// Continuous batching: waiting prompts take free slots, both in order. Prompts without a slot get -1.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// One block: which prompt a slot gets depends on every slot before it.
void run_block(const KernelCall& call, std::uint32_t) {
  const auto [slots, prompts, prompt_length, new_remaining] = call.shape.dims;
  std::int64_t prompt = 0;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const std::int32_t length = operand<const std::int32_t>(call, 0)[slot];
    const bool is_taken = length == 0 && prompt < prompts;
    if (is_taken) operand<std::int32_t>(call, 4)[prompt++] = static_cast<std::int32_t>(slot);
    operand<std::int32_t>(call, 2)[slot] = is_taken ? static_cast<std::int32_t>(prompt_length + 1) : length;
    operand<std::int32_t>(call, 3)[slot] =
        is_taken ? static_cast<std::int32_t>(new_remaining) : operand<const std::int32_t>(call, 1)[slot];
  }
  for (; prompt < prompts; ++prompt) operand<std::int32_t>(call, 4)[prompt] = -1;
}

void reference(const KernelCall& call) {
  const auto [slots, prompts, prompt_length, new_remaining] = call.shape.dims;
  const auto* const lengths = operand<const std::int32_t>(call, 0);
  std::copy_n(lengths, slots, operand<std::int32_t>(call, 2));
  std::copy_n(operand<const std::int32_t>(call, 1), slots, operand<std::int32_t>(call, 3));
  std::int64_t from = 0;
  for (std::int64_t p = 0; p < prompts; ++p) {
    const std::int64_t slot = std::find(lengths + from, lengths + slots, 0) - lengths;
    from = std::min(slots, slot + 1);
    operand<std::int32_t>(call, 4)[p] = slot == slots ? -1 : static_cast<std::int32_t>(slot);
    if (slot == slots) continue;
    operand<std::int32_t>(call, 2)[slot] = static_cast<std::int32_t>(prompt_length + 1);
    operand<std::int32_t>(call, 3)[slot] = static_cast<std::int32_t>(new_remaining);
  }
}

}  // namespace

Kernel admit() {
  return {.name = "admit",
          .summary = "waiting prompts take free slots",
          .operands = [](const KernelShape&) -> std::string_view { return "rrwww"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const std::int64_t slots = shape.dims[0];
            return {slots, slots, slots, slots, shape.dims[1]};
          },
          .cost = [](const KernelShape& shape) { return Cost{0, 16 * shape.dim(0) + 4 * shape.dim(1)}; },
          .blocks = [](const KernelShape&) { return 1u; },
          .run_block = run_block,
          .reference = reference,
          .geometry = [](const KernelShape&) { return Geometry{1, kThreads}; },
          .types = "iiiii"};
}

}  // namespace weir::catalogue
