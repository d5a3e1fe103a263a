// Chooses for each client from what is measured of it. Where there is no MPS it is the gate, and says why.
#include "submit/sched/mechanism/list.h"
#include "submit/sched/mechanism/mps_enforcer.h"

namespace weir::scheduler {
namespace {

std::unique_ptr<Enforcer> open_automatic(const MechanismSetup& setup) {
  std::string reason, hint;
  auto server = MpsServer::open(setup.socket, setup.mps, &reason, &hint);
  return std::make_unique<MpsEnforcer>(std::move(server), std::move(reason));
}

}  // namespace

Mechanism mechanism_list::automatic() {
  return {.name = "auto",
          .summary = "what fits each program, of gate, mps_priority and partition; the gate where there is no MPS",
          .notice = kMpsNotice,
          .open = open_automatic,
          .uses_mps = true,
          .confines = true,
          .lowers_priority = true};
}

}  // namespace weir::scheduler
