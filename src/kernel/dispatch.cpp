// Copies tokens to the experts that they picked: row slots[a] of expert ids[a] becomes token a / picks. Moves bits. The
// counterpart of combine.
#include <cstring>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// dims: tokens, width, picks, capacity; scalars[0]: experts.
std::int64_t experts_of(const KernelShape& shape) { return static_cast<std::int64_t>(shape.scalars[0]); }

// The output row of assignment `a`, or -1.
std::int64_t row_of(const KernelCall& call, std::int64_t a) {
  const std::int64_t capacity = call.shape.dims[3];
  const std::int32_t id = operand<const std::int32_t>(call, 1)[a], slot = operand<const std::int32_t>(call, 2)[a];
  const bool is_inside = id >= 0 && id < experts_of(call.shape) && slot >= 0 && slot < capacity;
  return is_inside ? id * capacity + slot : -1;
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [tokens, width, picks, capacity] = call.shape.dims;
  const Range range = block_range(tokens * picks, rows_per_block(width), block);
  const auto bytes = static_cast<std::size_t>(width) * size_of(call.shape.type);
  for (std::int64_t a = range.begin; a < range.end; ++a) {
    const std::int64_t row = row_of(call, a);
    if (row < 0) continue;
    std::memcpy(operand<std::byte>(call, 3) + static_cast<std::size_t>(row) * bytes,
                operand<const std::byte>(call, 0) + static_cast<std::size_t>(a / picks) * bytes, bytes);
  }
}

void reference(const KernelCall& call) {
  with_bits(call.shape.type, [&]<class Bits>(Bits*) {
    const auto [tokens, width, picks, capacity] = call.shape.dims;
    for (std::int64_t token = 0; token < tokens; ++token)
      for (std::int64_t pick = 0; pick < picks; ++pick)
        if (const std::int64_t row = row_of(call, token * picks + pick); row >= 0)
          for (std::int64_t c = 0; c < width; ++c)
            operand<Bits>(call, 3)[row * width + c] = operand<const Bits>(call, 0)[token * width + c];
  });
}

}  // namespace

Kernel dispatch() {
  return {.name = "dispatch",
          .summary = "tokens brought to the experts that they picked",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrp"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [tokens, width, picks, capacity] = shape.dims;
            return {tokens * width, tokens * picks, tokens * picks, experts_of(shape) * capacity * width};
          },
          .cost =
              [](const KernelShape& shape) {
                const auto rows = static_cast<double>(shape.dims[0] * shape.dims[2]);
                return Cost{0, rows * (2 * shape.dim(1) * element_bytes(shape) + 8)};
              },
          .blocks =
              [](const KernelShape& shape) {
                return block_count(shape.dims[0] * shape.dims[2], rows_per_block(shape.dims[1]));
              },
          .run_block = run_block,
          .reference = reference,
          .geometry =
              [](const KernelShape& shape) { return indexed_geometry(shape.dims[0] * shape.dims[2], shape.dims[1]); },
          .types = "tiit"};
}

}  // namespace weir::catalogue
