// Submits a step's commands in the order that a scheduling policy decides, with streams as its clients. Knows sessions
// and the conductor; what a policy thinks is the policy's business.
#pragma once

#include <memory>
#include <vector>

#include "submit/sched/policy.h"
#include "submit/submitter.h"

namespace weir {

// Shorter than among processes: from one stream to the other nothing has to be handed over.
inline constexpr std::int64_t kStreamSliceNs = 100'000;

struct ScheduleRequest {
  const scheduler::Policy* policy = nullptr;
  int in_flight = kDefaultInFlight;  // commands on the device at once, of all streams together
  scheduler::Settings settings{.slice_ns = kStreamSliceNs};
  std::vector<scheduler::Terms> terms;  // by stream
};

// What a stream asks for where nobody says otherwise: the highest priority among its commands, and an equal share.
std::vector<scheduler::Terms> stream_terms(const Step& step, const Placement& placement);

// One thread, the caller's. The next command is that of the stream which the policy ranks first among those that have
// one ready; of streams with equal ranks, the one whose command comes first in the step. A stream that has none ready
// keeps nobody waiting. The session has to follow progress; rejects one that cannot.
std::unique_ptr<Submitter> scheduled_submitter(const ScheduleRequest& request, const Step& step,
                                               const Placement& placement, Session& session, int traced_iterations = 0);

}  // namespace weir
