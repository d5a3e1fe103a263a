// Speculative decoding: how many drafted tokens the target model accepts, and its next token.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

constexpr std::int64_t kPerBlock = 1024;

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [sequences, speculated, unused0, unused1] = call.shape.dims;
  const Range range = block_range(sequences, kPerBlock, block);
  for (std::int64_t s = range.begin; s < range.end; ++s) {
    const auto* const draft = operand<const std::int32_t>(call, 0) + s * speculated;
    const auto* const target = operand<const std::int32_t>(call, 1) + s * (speculated + 1);
    const auto agreed = std::mismatch(draft, draft + speculated, target).first - draft;
    const auto accepted = static_cast<std::int32_t>(agreed + 1);
    operand<std::int32_t>(call, 3)[s] = operand<const std::int32_t>(call, 2)[s] + accepted;
    operand<std::int32_t>(call, 4)[s] = target[agreed];
    operand<std::int32_t>(call, 5)[s] = accepted;
  }
}

void reference(const KernelCall& call) {
  const auto [sequences, speculated, unused0, unused1] = call.shape.dims;
  for (std::int64_t s = 0; s < sequences; ++s) {
    std::int32_t n = 0;
    while (n < speculated && operand<const std::int32_t>(call, 0)[s * speculated + n] ==
                                 operand<const std::int32_t>(call, 1)[s * (speculated + 1) + n])
      ++n;
    operand<std::int32_t>(call, 3)[s] = operand<const std::int32_t>(call, 2)[s] + n + 1;
    operand<std::int32_t>(call, 4)[s] = operand<const std::int32_t>(call, 1)[s * (speculated + 1) + n];
    operand<std::int32_t>(call, 5)[s] = n + 1;
  }
}

}  // namespace

Kernel accept() {
  return {.name = "accept",
          .summary = "drafted tokens that the target model agrees with",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrwww"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [sequences, speculated, unused0, unused1] = shape.dims;
            return {sequences * speculated, sequences * (speculated + 1), sequences, sequences, sequences, sequences};
          },
          .cost = [](const KernelShape& shape) { return Cost{0, 4 * shape.dim(0) * (2 * shape.dim(1) + 5)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kPerBlock); },
          .run_block = run_block,
          .reference = reference,
          .geometry = [](const KernelShape& shape) { return Geometry{grid_of(divide_up(shape.dims[0], 32)), 32}; },
          .types = "iiiiii"};
}

}  // namespace weir::catalogue
