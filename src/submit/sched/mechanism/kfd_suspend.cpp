// On AMD GPUs: the driver takes the queues of a client off the hardware while it has to wait, running kernels included.
#include "amd/kfd/debug_trap.h"
#include "amd/kfd/queue_control.h"
#include "base/error.h"
#include "submit/sched/mechanism/list.h"
#include "submit/sched/mechanism/queue_suspender.h"

namespace weir::scheduler {
namespace {

std::unique_ptr<Enforcer> open_kfd_suspend(const Settings& settings) {
  std::string reason;
  std::unique_ptr<kfd::DebugTrap> trap = kfd::open_debug_trap(&reason);
  if (trap == nullptr)
    reject_setting("mechanism", "kfd_suspend", reason,
                   "It needs an AMD GPU and its driver; --mechanism gate holds launches on every device.");
  kfd::InterfaceVersion version;
  if (trap->version(&version) < 0 || !version.has_debug_trap())
    reject_setting("mechanism", "kfd_suspend", "the driver cannot suspend queues",
                   "Interface 1.13 or newer is needed: update amdgpu, or use --mechanism gate.");
  return std::make_unique<QueueSuspender>(std::move(trap), settings);
}

}  // namespace

Mechanism mechanism_list::kfd_suspend() {
  return {.name = "kfd_suspend",
          .summary = "AMD: the queues of a client that has to wait are also taken off the GPU, with what runs there",
          .notice = kfd::kSuspendNotice,
          .open = open_kfd_suspend};
}

}  // namespace weir::scheduler
