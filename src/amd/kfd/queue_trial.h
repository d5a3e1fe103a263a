// Lists, suspends and resumes the queues of a process that runs, round by round, and notes how long the driver takes.
// Knows the driver's interface through queue_control.h, which resumes everything whatever happens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "amd/kfd/queue_control.h"
#include "base/json.h"

namespace weir::kfd {

struct QueueTrialPlan {
  int rounds = 1;
  bool suspends = false;                                      // false: the queues are only listed
  std::vector<std::uint32_t> ids;                             // to suspend; empty: all that run kernels
  std::int64_t hold_ns = 10'000'000, pause_ns = 100'000'000;  // suspended, and running again before the next round
  // Waits about that long; false ends the trial. Called while queues are suspended, too; may throw.
  std::function<bool(std::int64_t ns)> wait;
};

struct QueueTrial {
  int pid = 0;
  std::vector<QueueSnapshot> queues;                             // of the first round
  std::vector<std::uint32_t> suspended;                          // those that were asked for
  std::vector<std::int64_t> snapshot_ns, suspend_ns, resume_ns;  // of each round
  std::size_t changes = 0;  // rounds in which the process had other queues than in the one before
  bool is_stopped = false;
};

// Fails where the driver refuses, with its reason; nothing stays suspended.
QueueTrial try_queues(DebugTrap& trap, int pid, const QueueTrialPlan& plan);

// weir.amd_queues/1. `name`: of the process; may be empty.
Json queue_trial_document(const QueueTrial& trial, const QueueTrialPlan& plan, const std::string& name);

}  // namespace weir::kfd
