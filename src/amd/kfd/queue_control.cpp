#include "amd/kfd/queue_control.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace weir::kfd {
namespace {

constexpr int kDetachTries = 10;  // of a process that does not stop for it

void check(TrapStep step, int result, int pid, bool is_self) {
  if (result >= 0) return;
  const Refusal refusal = explain(step, -result, pid, is_self);
  fail(refusal.what, refusal.hint);
}

std::string_view words_of(TrapStep step) {
  constexpr std::string_view kWords[] = {"asking for the driver's version",
                                         "attaching",
                                         "enabling the runtime",
                                         "enabling the debugger's interface",
                                         "listing queues",
                                         "suspending queues",
                                         "resuming queues"};
  return kWords[static_cast<std::size_t>(step)];
}

// Sorts ids by the driver's marks.
void sort_marked(const std::vector<std::uint32_t>& ids, const std::vector<std::uint32_t>& marked,
                 std::vector<std::uint32_t>& fine, std::vector<std::uint32_t>& failed,
                 std::vector<std::uint32_t>& invalid) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    ((marked[i] & kQueueFailed) != 0 ? failed : (marked[i] & kQueueInvalid) != 0 ? invalid : fine).push_back(ids[i]);
}

void check_ids(const std::vector<std::uint32_t>& ids, const std::set<std::uint32_t>& suspended) {
  if (ids.empty()) reject("no queue to suspend was named");
  if (ids.size() > kMaxQueues)
    reject(fmt::format("{} queues cannot be suspended: a process has at most {}", ids.size(), kMaxQueues));
  std::set<std::uint32_t> seen;
  for (const std::uint32_t id : ids) {
    if (id > kQueueIdBits) reject(fmt::format("queue {}: no id is that large", id), "Take ids from the snapshot.");
    if (!seen.insert(id).second) reject(fmt::format("queue {} is named twice", id));
    if (suspended.contains(id)) reject(fmt::format("queue {} is suspended already", id), "Resume it first.");
  }
}

}  // namespace

Refusal explain(TrapStep step, int error, int pid, bool is_self) {
  const std::string who = is_self ? "this process" : fmt::format("process {}", pid);
  const auto refused = [&](std::string_view why, std::string hint) {
    return Refusal{fmt::format("{} of {} was refused: {}", words_of(step), who, why), std::move(hint)};
  };
  const bool is_enabling = step == TrapStep::enable, is_attaching = step == TrapStep::attach;
  switch (error) {
    case EINVAL:
      if (is_enabling)
        return refused("the driver runs without the hardware's scheduler (sched_policy=2)",
                       "Load amdgpu with sched_policy=0; cat /sys/module/amdgpu/parameters/sched_policy shows it.");
      return refused("the debugger's interface is not enabled for it", "It was disabled meanwhile: attach again.");
    case ESRCH:
      return refused(is_attaching ? "no such process" : "the driver does not know it",
                     "It has ended, or never opened /dev/kfd; a container's processes have other numbers outside.");
    case EPERM:
    case EACCES:
      if (is_attaching)
        return refused("it may not be traced",
                       "It is another user's, or traced by a debugger already, or kernel.yama.ptrace_scope forbids it: "
                       "start it as a child, or ask for CAP_SYS_PTRACE.");
      if (is_enabling)
        return refused(
            is_self ? "it may not debug itself" : "it is not traced by this thread",
            "The driver wants the caller to be its tracer; to be root is not enough. Detach gdb or rocgdb first.");
      return refused("its runtime is not enabled, or it is not traced by this thread any more",
                     is_self ? "Some drivers refuse this to a process that suspends its own queues: use two processes."
                             : "Wait until it has started ROCm (hsa_init), then attach again.");
    case EBUSY:
      return refused("PC sampling is active", "Stop the profiler that samples it (rocprofv3 --pc-sampling).");
    case EEXIST:
      return refused("it has queues already", "Enable the runtime before the first use of the GPU.");
    case EALREADY:
      return refused("a debugger has enabled it already", "Detach gdb or rocgdb first.");
    case ENODEV:
      return refused("a GPU of it cannot be debugged", "GPUs before gfx9 cannot; hide it with ROCR_VISIBLE_DEVICES.");
    case ENOTTY:
      return refused("the driver does not know the call", "Interface 1.13 or newer is needed: update amdgpu.");
    default:
      return refused(fmt::format("{} (error {})", std::strerror(error), error), "The kernel log (dmesg) says more.");
  }
}

QueueControl::QueueControl(DebugTrap& trap, int pid) : QueueControl(trap, pid, Nothing{}) {
  // The delegated constructor is done, so if anything below throws, the destructor undoes the steps so far.
  const bool is_self = pid == trap_.own_pid();
  InterfaceVersion version;
  check(TrapStep::version, trap_.version(&version), pid, is_self);
  if (!version.has_debug_trap())
    fail(fmt::format("the driver's interface is {}.{}, which cannot suspend queues", version.major, version.minor),
         "Interface 1.13 or newer is needed: update amdgpu.");
  if (is_self) {
    const int result = trap_.runtime_enable();
    has_runtime_ = result >= 0;
    if (result != -EBUSY) check(TrapStep::runtime, result, pid, is_self);  // EBUSY: the ROCm runtime did it
  } else {
    check(TrapStep::attach, trap_.attach(pid), pid, is_self);
    is_attached_ = true;
  }
  RuntimeState state = RuntimeState::disabled;
  check(TrapStep::enable, trap_.enable(pid, 0, &state), pid, is_self);
  is_enabled_ = true;
  // Otherwise the driver would refuse later, at the first suspend, when a caller already relies on it.
  if (state != RuntimeState::enabled) check(TrapStep::suspend, -EPERM, pid, is_self);
}

QueueControl::~QueueControl() {
  free_queues();
  forget();
  if (has_runtime_) trap_.runtime_disable();
  for (int tries = 0; is_attached_ && tries < kDetachTries; ++tries) is_attached_ = trap_.detach(pid_) == -EAGAIN;
}

bool QueueControl::free_queues() noexcept {
  if (has_suspended()) {
    try {
      resume();
    } catch (...) {
      // Disabling below resumes everything as well.
    }
  }
  if (is_enabled_) {
    const int result = trap_.disable(pid_);
    // ESRCH and EINVAL: there is nothing enabled any more.
    if (result >= 0 || result == -ESRCH || result == -EINVAL) {
      is_enabled_ = false;
      forget();
    }
  }
  return !has_suspended();
}

bool QueueControl::let_go() noexcept {
  if (!free_queues()) return false;  // the driver resumes for the tracer alone
  if (is_attached_ && trap_.detach(pid_) != -EAGAIN) is_attached_ = false;
  return !is_attached_;
}

void QueueControl::forget() noexcept {
  touched_.clear();
  guard_.reset();
}

void QueueControl::check_thread() const {
  if (is_attached_ && std::this_thread::get_id() != thread_)
    fail("queues are controlled from another thread than the one that attached, which the driver refuses");
}

std::vector<QueueSnapshot> QueueControl::queues() {
  check_thread();
  std::vector<QueueSnapshot> queues;
  // The process may create queues meanwhile, so repeat until all fit and none of them is left new.
  std::size_t room = 64;
  for (int tries = 0; tries < 8; ++tries) {
    queues.assign(room, {});
    const int count = trap_.queue_snapshot(pid_, kQueueNew, queues);
    check(TrapStep::snapshot, count, pid_, pid_ == trap_.own_pid());
    if (static_cast<std::size_t>(count) <= room) {
      queues.resize(static_cast<std::size_t>(count));
      return queues;
    }
    room = static_cast<std::size_t>(count) + 16;
    if (room > 2 * kMaxQueues) break;
  }
  fail(fmt::format("process {}: the driver lists more and more queues", pid_));
}

SuspendOutcome QueueControl::suspend(const std::vector<std::uint32_t>& ids, std::uint32_t grace_period) {
  check_thread();
  check_ids(ids, touched_);
  std::vector<std::uint32_t> marked = ids;
  // From here on queues may be suspended, even if the call fails.
  if (!guard_) guard_.emplace(trap_, pid_);
  touched_.insert(ids.begin(), ids.end());
  SuspendOutcome outcome;
  const std::int64_t began_ns = trap_.now_ns();
  const int count = trap_.suspend_queues(pid_, marked, kQueueNew, grace_period);
  outcome.took_ns = trap_.now_ns() - began_ns;
  if (count < 0) {
    try {
      resume();
    } catch (const Error&) {
      // The caller gets the refusal of the suspend, reported below.
    }
    check(TrapStep::suspend, count, pid_, pid_ == trap_.own_pid());
  }
  sort_marked(ids, marked, outcome.suspended, outcome.failed, outcome.invalid);
  for (const std::uint32_t id : outcome.invalid) touched_.erase(id);
  if (touched_.empty()) forget();
  if (static_cast<std::size_t>(count) != outcome.suspended.size()) {
    const std::size_t unmarked = outcome.suspended.size();
    resume();
    fail(fmt::format("process {}: the driver says that {} queues are suspended, and marks all but {} as not", pid_,
                     count, unmarked),
         "All were resumed.");
  }
  return outcome;
}

ResumeOutcome QueueControl::resume() {
  ResumeOutcome outcome;
  if (touched_.empty()) return outcome;
  const std::vector<std::uint32_t> ids(touched_.begin(), touched_.end());
  std::vector<std::uint32_t> marked = ids;
  const std::int64_t began_ns = trap_.now_ns();
  const int count = trap_.resume_queues(pid_, marked);
  outcome.took_ns = trap_.now_ns() - began_ns;
  if (count < 0) {
    // Disabling resumes everything, and is allowed where resuming is refused.
    const int disabled = trap_.disable(pid_);
    if (disabled >= 0) is_enabled_ = false;
    Refusal refusal = explain(TrapStep::resume, -count, pid_, pid_ == trap_.own_pid());
    if (disabled < 0 && disabled != -ESRCH)
      fail(fmt::format("{}; disabling the interface was refused as well, so queues {} are still suspended",
                       refusal.what, fmt::join(ids, ", ")),
           "End this process: the driver disables the interface then, and resumes them.");
    forget();
    fail(refusal.what + "; disabling the interface resumed them", refusal.hint);
  }
  std::vector<std::uint32_t> failed;
  sort_marked(ids, marked, outcome.resumed, failed, outcome.gone);
  forget();
  if (!failed.empty())
    fail(fmt::format("process {}: the hardware did not take queues {} back", pid_, fmt::join(failed, ", ")),
         "The GPU may need a reset; the kernel log (dmesg) says more.");
  return outcome;
}

Suspension::Suspension(QueueControl& control, const std::vector<std::uint32_t>& ids) : control_(control) {
  const SuspendOutcome outcome = control_.suspend(ids);
  took_ns_ = outcome.took_ns;
  if (outcome.is_whole()) return;
  control_.resume();
  if (!outcome.failed.empty())
    fail(fmt::format("the hardware did not let go of queues {}", fmt::join(outcome.failed, ", ")),
         "All were resumed. The kernel log (dmesg) says more: queue preemption that fails means that the GPU hangs.");
  fail(fmt::format("queues {} are new, being destroyed, or not of this process", fmt::join(outcome.invalid, ", ")),
       "All were resumed. List the queues again, which takes what is new into account.");
}

Suspension::~Suspension() {
  try {
    control_.resume();
  } catch (...) {
    // The control's destructor disables the interface, which resumes everything.
  }
}

ResumeOutcome Suspension::resume() { return control_.resume(); }

}  // namespace weir::kfd
