// The intruder runs while the victim's queues are suspended: for each request it suspends them, sends what is due, and
// resumes them when it has ended. Knows the driver's interface and a visitor; no device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "amd/kfd/queue_control.h"
#include "lab/preempt/experiment.h"

namespace weir::preempt {

// The source of requests, open loop: it decides when they are due.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual std::int64_t now_ns() noexcept = 0;
  virtual void wait_until(std::int64_t ns) noexcept = 0;
  // Sends what is due by now. Returns when the next one is due, or kNoTime if there is none.
  virtual std::int64_t send(std::int64_t now_ns) noexcept = 0;
  virtual bool has_pending() noexcept = 0;
};

struct Visits {
  std::vector<std::int64_t> suspend_ns, resume_ns;  // duration of each call, on the host's clock
};

// Runs until there are no more requests, or `progress` (which may be empty) returns false. Requests that become due
// while the victim is suspended are served before it is resumed. Nothing stays suspended, even if it throws.
Visits serve(Visitor& visitor, std::int64_t first_due_ns, kfd::QueueControl& victim,
             const std::function<bool()>& progress);

// The queues to suspend: those that run kernels. Rejects a process without any.
std::vector<std::uint32_t> compute_queues(kfd::QueueControl& victim);

// Facts that decide whether queues can be suspended, as far as they are known in advance.
struct SuspendFacts {
  std::string backend;  // of the device
  kfd::InterfaceVersion version;
  std::optional<std::string> sched_policy, ptrace_scope;  // from the kernel's files; nothing: unknown
};
Capability can_suspend(const SuspendFacts& facts);

}  // namespace weir::preempt
