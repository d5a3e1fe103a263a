// On NVIDIA GPUs: kernels of clients run beside each other in one MPS server, where those of low priority give way
// between blocks. Launches are held as at the gate.
#include "submit/sched/mechanism/list.h"
#include "submit/sched/mechanism/mps_enforcer.h"

namespace weir::scheduler {

Mechanism mechanism_list::mps_priority() {
  return {.name = "mps_priority",
          .summary = "NVIDIA: programs share an MPS server, those of priority below 0 at low priority",
          .notice = kMpsNotice,
          .open = [](const MechanismSetup& setup) { return open_mps("mps_priority", setup); },
          .uses_mps = true,
          .lowers_priority = true};
}

}  // namespace weir::scheduler
