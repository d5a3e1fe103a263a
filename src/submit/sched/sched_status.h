// The state of a daemon as a document. Names from clients are made short and safe for a terminal.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/json.h"
#include "submit/sched/board.h"
#include "submit/sched/chooser.h"
#include "submit/sched/conductor.h"
#include "submit/sched/mechanism.h"

namespace weir::scheduler {

// What the daemon knows about a seat besides board and conductor.
struct Occupant {
  int pid = 0;  // 0: not visible from here
  std::string program;
  std::int64_t joined_ns = 0;
};

struct SchedulerSnapshot {
  const Conductor* conductor = nullptr;
  const Board* board = nullptr;
  const std::array<Occupant, kMaxClients>* occupants = nullptr;
  const Mechanism* mechanism = nullptr;  // null: the gate
  const Enforcer* enforcer = nullptr;    // null: the gate alone
  int pid = 0;
  std::int64_t begun_ns = 0, now_ns = 0;
  std::uint32_t in_flight = 0;       // 0: chosen for each client
  const Chooser* chooser = nullptr;  // after decide()
  bool confines = false;             // not where the mechanism would, but has no MPS
};

Json status_document(const SchedulerSnapshot& snapshot);  // "schema": "weir.sched_status/1"

}  // namespace weir::scheduler
