#include "lab/preempt/suspended_visits.h"

#include <fmt/format.h>

#include "base/error.h"

namespace weir::preempt {
namespace {

constexpr std::int64_t kStuckVisitNs = 10'000'000'000;  // a short kernel alone on the device has ended long before

}  // namespace

Visits serve(Visitor& visitor, std::int64_t first_due_ns, kfd::QueueControl& victim,
             const std::function<bool()>& progress) {
  const std::vector<std::uint32_t> queues = compute_queues(victim);
  Visits visits;
  for (std::int64_t due_ns = first_due_ns; due_ns != kNoTime;) {
    if (progress && !progress()) break;
    visitor.wait_until(due_ns);
    kfd::Suspension suspension(victim, queues);
    const std::int64_t began_ns = visitor.now_ns();
    do {
      due_ns = visitor.send(visitor.now_ns());
      if (visitor.now_ns() - began_ns > kStuckVisitNs)
        fail("a request did not end while the victim was suspended", "The kernel log (dmesg) may say more.");
    } while (visitor.has_pending());
    visits.suspend_ns.push_back(suspension.took_ns());
    visits.resume_ns.push_back(suspension.resume().took_ns);
  }
  return visits;
}

std::vector<std::uint32_t> compute_queues(kfd::QueueControl& victim) {
  std::vector<std::uint32_t> ids = kfd::compute_ids(victim.queues());
  if (ids.empty()) fail("the victim has no queue that runs kernels", "It has not started yet, or uses another device.");
  return ids;
}

Capability can_suspend(const SuspendFacts& facts) {
  if (facts.backend != "hip") return lacking("queues can be suspended on AMD GPUs only");
  if (!facts.version.has_debug_trap())
    return lacking(fmt::format("the driver's interface is {}.{}; 1.13 or newer can suspend queues", facts.version.major,
                               facts.version.minor));
  if (facts.sched_policy == "2") return lacking("amdgpu runs without the hardware's scheduler (sched_policy=2)");
  if (facts.ptrace_scope == "3")
    return lacking("the kernel does not allow tracing of processes (kernel.yama.ptrace_scope=3)");
  return {};
}

}  // namespace weir::preempt
