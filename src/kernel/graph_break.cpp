// What a host does between two compiled regions: copies a value and takes some time. Runs only on hosts.
#include <cstring>

#include "base/clock.h"
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

std::size_t size_bytes(const KernelShape& shape) {
  return static_cast<std::size_t>(shape.dims[0]) * size_of(shape.type);
}

void run_block(const KernelCall& call, std::uint32_t) {
  const std::int64_t started_ns = now_ns();
  std::memcpy(call.operands[1], call.operands[0], size_bytes(call.shape));
  while (now_ns() - started_ns < call.shape.dims[1]) {
  }
}

void reference(const KernelCall& call) {
  for (std::size_t i = 0; i < size_bytes(call.shape); ++i)
    operand<std::byte>(call, 1)[i] = operand<const std::byte>(call, 0)[i];
}

}  // namespace

Kernel graph_break() {
  return {.name = "graph_break",
          .summary = "a host that looks at a value before the work goes on",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[0]}; },
          .cost = [](const KernelShape& shape) { return Cost{0, 2 * static_cast<double>(size_bytes(shape))}; },
          .blocks = [](const KernelShape&) { return 1u; },
          .run_block = run_block,
          .reference = reference,
          .is_host_only = true};
}

}  // namespace weir::catalogue
