// On NVIDIA GPUs: clients of low priority get a part of the device's threads, fixed when their contexts are made, so
// that room is left for the others whatever runs. Launches are held as at the gate.
#include "submit/sched/mechanism/list.h"
#include "submit/sched/mechanism/mps_enforcer.h"

namespace weir::scheduler {

Mechanism mechanism_list::mps_share() {
  return {.name = "mps_share",
          .summary = "NVIDIA: programs share an MPS server, those of priority below 0 on 80 % of its threads",
          .notice = kMpsNotice,
          .open = [](const MechanismSetup& setup) { return open_mps("mps_share", setup); },
          .uses_mps = true,
          .low_share_percent = 80};
}

}  // namespace weir::scheduler
