// A copy by compute units, for comparison with copy engines. Moves bits of any element type.
#include <cstring>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const Range range = block_range(call.shape.dims[0], kBlockElements, block);
  const auto element = static_cast<std::int64_t>(size_of(call.shape.type));
  std::memcpy(operand<std::byte>(call, 1) + range.begin * element,
              operand<const std::byte>(call, 0) + range.begin * element,
              static_cast<std::size_t>(range.size() * element));
}

void reference(const KernelCall& call) {
  const auto size = static_cast<std::int64_t>(size_of(call.shape.type)) * call.shape.dims[0];
  for (std::int64_t i = 0; i < size; ++i) operand<std::byte>(call, 1)[i] = operand<const std::byte>(call, 0)[i];
}

}  // namespace

Kernel copy() {
  return {.name = "copy",
          .summary = "copy by compute units",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[0]}; },
          .cost = [](const KernelShape& shape) { return Cost{0, 2 * shape.dim(0) * element_bytes(shape)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
          .run_block = run_block,
          .reference = reference,
          .geometry = element_geometry};
}

}  // namespace weir::catalogue
