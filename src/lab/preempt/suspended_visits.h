// The intruder comes while the victim's queues are suspended: for each request they are suspended, what is due is sent,
// and when it has ended they are resumed. Knows the driver's interface and a visitor; no device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "amd/kfd/queue_control.h"
#include "lab/preempt/experiment.h"

namespace weir::preempt {

// Whose requests are served, open loop: when they are due is not for us to say.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual std::int64_t now_ns() noexcept = 0;
  virtual void wait_until(std::int64_t ns) noexcept = 0;
  // Sends what is due by now; when the next one is due, kNoTime where there is none.
  virtual std::int64_t send(std::int64_t now_ns) noexcept = 0;
  virtual bool has_pending() noexcept = 0;
};

struct Visits {
  std::vector<std::int64_t> suspend_ns, resume_ns;  // of each call, by the host's clock
};

// Until there are no more requests, or `progress` says so (it may be empty). Requests that come due while the victim is
// suspended are served before it is resumed. Nothing stays suspended, also where it throws.
Visits serve(Visitor& visitor, std::int64_t first_due_ns, kfd::QueueControl& victim,
             const std::function<bool()>& progress);

// Queues to suspend: those that run kernels. Rejects where there are none.
std::vector<std::uint32_t> compute_queues(kfd::QueueControl& victim);

// What decides whether queues can be suspended at all, as far as that shows beforehand.
struct SuspendFacts {
  std::string backend;  // of the device
  kfd::InterfaceVersion version;
  std::optional<std::string> sched_policy, ptrace_scope;  // as the kernel's files say; none: not told
};
Capability can_suspend(const SuspendFacts& facts);

}  // namespace weir::preempt
