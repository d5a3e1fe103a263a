// Occupies its stream until the host sets a flag or a limit has passed, so it cannot hang. Records when it ran.
#include <time.h>

#include <atomic>

#include "base/clock.h"
#include "kernel/body.h"
#include "kernel/moment.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t) {
  std::atomic_ref flag(*operand<std::int32_t>(call, 0));
  std::int32_t* const at = operand<std::int32_t>(call, 1);
  const std::int64_t started_ns = now_ns();
  write_started(at, started_ns);
  // Sleeps, so that dozens of held streams leave the cores to the others.
  constexpr timespec kNap{0, 200'000};
  while (flag.load(std::memory_order_acquire) == 0 && now_ns() - started_ns < call.shape.dims[0])  // pairs with release
    nanosleep(&kNap, nullptr);
  write_ended(at, now_ns());
}

}  // namespace

// dims: limit in ns. Operands: the flag, and the record of its moments.
Kernel hold() {
  return {.name = "hold",
          .summary = "waits for a flag that the host sets, up to a limit",
          .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
          .extents = [](const KernelShape&) -> Extents { return {1, kMomentElements}; },
          .cost = [](const KernelShape&) { return Cost{0, 20}; },
          .blocks = [](const KernelShape&) { return 1u; },
          .run_block = run_block,
          .reference = nullptr,
          .geometry = [](const KernelShape&) { return Geometry{1, 32}; },
          .is_probe = true,
          .lasts = Lasts::until_flag};
}

}  // namespace weir::catalogue
