// Submits a step's commands in the order that a scheduling policy decides, with streams as its clients. Knows sessions
// and the conductor; leaves all decisions to the policy.
#pragma once

#include <memory>
#include <vector>

#include "submit/sched/policy.h"
#include "submit/submitter.h"

namespace weir {

// Shorter than between processes: switching between streams needs no hand-over.
inline constexpr std::int64_t kStreamSliceNs = 100'000;

struct ScheduleRequest {
  const scheduler::Policy* policy = nullptr;
  int in_flight = kDefaultInFlight;  // commands on the device at once, over all streams
  scheduler::Settings settings{.slice_ns = kStreamSliceNs};
  std::vector<scheduler::Terms> terms;  // by stream
};

// The default terms of a stream: the highest priority among its commands, and an equal share.
std::vector<scheduler::Terms> stream_terms(const Step& step, const Placement& placement);

// Uses one thread, the caller's. The next command is that of the stream which the policy ranks first among those that
// have one ready; of streams with equal ranks, the one whose command comes first in the step. A stream without a ready
// command keeps nobody waiting. Rejects a session that cannot follow progress.
std::unique_ptr<Submitter> scheduled_submitter(const ScheduleRequest& request, const Step& step,
                                               const Placement& placement, Session& session, int traced_iterations = 0);

}  // namespace weir
