// On NVIDIA GPUs: kernels of clients that would have to wait run beside the others, in a part of the device.
#include "submit/sched/mechanism/list.h"
#include "submit/sched/mechanism/mps_enforcer.h"

namespace weir::scheduler {

Mechanism mechanism_list::partition() {
  return {.name = "partition",
          .summary =
              "NVIDIA: programs share an MPS server; kernels of programs that must wait may run in a part of the GPU",
          .notice = kMpsNotice,
          .open = [](const MechanismSetup& setup) { return open_mps("partition", setup); },
          .uses_mps = true,
          .confines = true,
          .lowers_priority = true};
}

}  // namespace weir::scheduler
