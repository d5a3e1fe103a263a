// Busy-waits for a given time and records when: the marker of every experiment on queues. Needs no profiler.
#include "base/clock.h"
#include "kernel/body.h"
#include "kernel/busy_wait.h"
#include "kernel/moment.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  if (block >= call.shape.dims[1]) return;
  std::int32_t* const at = operand<std::int32_t>(call, 0) + kMomentElements * static_cast<std::ptrdiff_t>(block);
  const std::int64_t started_ns = now_ns();
  write_started(at, started_ns);
  write_ended(at, busy_wait(started_ns, call.shape.dims[0]));
}

}  // namespace

// dims: duration in ns, blocks. Every block writes its own moment.
Kernel stamp() {
  return {.name = "stamp",
          .summary = "busy-waits for a given time and writes down when",
          .operands = [](const KernelShape&) -> std::string_view { return "w"; },
          .extents = [](const KernelShape& shape) -> Extents { return {kMomentElements * shape.dims[1]}; },
          .cost = [](const KernelShape& shape) { return Cost{0, 16 * shape.dim(1)}; },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[1], 1); },
          .run_block = run_block,
          .reference = nullptr,
          .geometry = [](const KernelShape& shape) { return Geometry{grid_of(shape.dims[1]), 32}; },
          .is_probe = true,
          .lasts = Lasts::by_time};
}

}  // namespace weir::catalogue
