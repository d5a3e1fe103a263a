// Copies new keys or values into each sequence's slot of a cache, after its current contents. Moves bits. Slots must be
// distinct, because blocks run in any order; negative slots and positions outside of the cache are skipped.
#include <cstring>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

std::int64_t slots_total(const KernelShape& shape) { return static_cast<std::int64_t>(shape.scalars[0]); }

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [sequences, queries, positions, width] = call.shape.dims;
  const auto row_bytes = static_cast<std::size_t>(width) * size_of(call.shape.type);
  const Range range = block_range(sequences * queries, rows_per_block(width), block);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const std::int64_t sequence = row / queries;
    const std::int64_t slot = operand<const std::int32_t>(call, 1)[sequence];
    const std::int64_t position = operand<const std::int32_t>(call, 2)[sequence] - queries + row % queries;
    if (slot < 0 || slot >= slots_total(call.shape) || position < 0 || position >= positions) continue;
    std::memcpy(operand<std::byte>(call, 3) + static_cast<std::size_t>(slot * positions + position) * row_bytes,
                operand<const std::byte>(call, 0) + static_cast<std::size_t>(row) * row_bytes, row_bytes);
  }
}

// From the cache's side: checks for each of its elements whether something is written there.
void reference(const KernelCall& call) {
  with_bits(call.shape.type, [&]<class Bits>(Bits*) {
    const auto [sequences, queries, positions, width] = call.shape.dims;
    for (std::int64_t s = 0; s < sequences; ++s) {
      const std::int64_t slot = operand<const std::int32_t>(call, 1)[s];
      if (slot < 0 || slot >= slots_total(call.shape)) continue;
      const std::int64_t end = operand<const std::int32_t>(call, 2)[s];
      for (std::int64_t p = 0; p < positions; ++p) {
        if (p >= end || p < end - queries) continue;
        for (std::int64_t c = 0; c < width; ++c)
          operand<Bits>(call, 3)[(slot * positions + p) * width + c] =
              operand<const Bits>(call, 0)[(s * queries + queries - (end - p)) * width + c];
      }
    }
  });
}

}  // namespace

Kernel cache_write() {
  return {.name = "cache_write",
          .summary = "fresh rows moved to the end of each sequence's cache slot",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrp"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const auto [sequences, queries, positions, width] = shape.dims;
            return {sequences * queries * width, sequences, sequences, slots_total(shape) * positions * width};
          },
          .cost =
              [](const KernelShape& shape) {
                const auto sequences = shape.dim(0);
                const double moved = sequences * shape.dim(1) * shape.dim(3);
                return Cost{0, 2 * moved * element_bytes(shape) + 8 * sequences};
              },
          .blocks =
              [](const KernelShape& shape) {
                return block_count(shape.dims[0] * shape.dims[1], rows_per_block(shape.dims[3]));
              },
          .run_block = run_block,
          .reference = reference,
          .geometry =
              [](const KernelShape& shape) {
                const auto per_thread = static_cast<std::int64_t>(16 / size_of(shape.type));
                return indexed_geometry(shape.dims[0] * shape.dims[1], divide_up(shape.dims[3], per_thread));
              },
          .types = "tiit"};
}

}  // namespace weir::catalogue
