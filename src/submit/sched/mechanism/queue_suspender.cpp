#include "submit/sched/mechanism/queue_suspender.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "amd/kfd/queue_control.h"
#include "base/clock.h"
#include "base/error.h"
#include "submit/sched/mechanism/suspend_pace.h"

namespace weir::scheduler {
namespace {

constexpr const char* kNotTried = "it has not had to wait for anybody yet";

}  // namespace

// One client, on the tracer's thread. It is attached when it first has to wait, because a program that never waits
// should not be traced, and because its runtime has started by then.
class QueueSuspender::Target {
 public:
  Target(kfd::DebugTrap& trap, const Limits& limits, std::int64_t slice_ns, int pid)
      : trap_(trap), limits_(limits), pid_(pid), pace_(slice_ns) {
    use_.reason = kNotTried;
  }

  MechanismUse use() const {
    MechanismUse use = use_;
    if (use.is_off) use.off_ns += weir::now_ns() - off_since_ns_;
    return use;
  }

  // Passes on signals that wait for its tracer. False once its process has ended.
  bool attend() const { return !control_ || trap_.attend(pid_); }

  // The driver's part of let_go(), which no process can delay.
  void free_queues() {
    suspension_.reset();
    if (control_) control_->free_queues();
  }

  // True once it is neither suspended nor traced. Otherwise serve() tries again.
  bool let_go() {
    suspension_.reset();
    is_leaving_ = control_ && !control_->let_go();
    if (!is_leaving_) control_.reset();
    if (!control_ || !control_->has_suspended()) came_back();
    return !is_leaving_;
  }

  // Does what is due for a client that has to wait, or need not. Returns when it must be called again.
  std::int64_t serve(bool must_wait, std::int64_t now_ns) {
    if (must_wait) wanted_ns_ = now_ns;
    try {
      if (is_leaving_) {
        // A driver that refuses to resume is asked again after a while, a process that does not stop soon.
        if (!attend() || !control_->has_suspended() || now_ns >= leave_ns_) {
          leave_ns_ = now_ns + limits_.retry_ns;
          let_go();
        }
      } else if (!attend()) {
        refuse("its process has ended", kNever);
      } else if (must_wait && !suspension_ && now_ns >= retry_ns_ && pace_.may_suspend(now_ns)) {
        suspend(now_ns);
      } else if (!must_wait && suspension_) {
        resume();
      } else if (control_ && !suspension_ && now_ns - wanted_ns_ > limits_.release_ns) {
        let_go();
      }
    } catch (const Error& error) {
      refuse(error.hint.empty() ? error.what() : fmt::format("{}. {}", error.what(), error.hint),
             weir::now_ns() + limits_.retry_ns);
    }
    std::int64_t next = control_ ? now_ns + limits_.attend_ns : kNever;
    if (must_wait && !suspension_ && !is_leaving_) next = std::min(next, std::max(retry_ns_, pace_.runs_until_ns()));
    return next;
  }

 private:
  void suspend(std::int64_t now_ns) {
    if (pid_ <= 0) return refuse("its process is not visible from here: it has another pid namespace", kNever);
    if (pid_ == trap_.own_pid()) return refuse("it is the scheduler's own process", kNever);
    const std::int64_t began_ns = weir::now_ns();
    if (!control_) control_.emplace(trap_, pid_);
    // Listed each time: programs create queues while they run. What it creates while it is suspended stays empty,
    // because its launches are held at the gate.
    const std::vector<std::uint32_t> queues = kfd::compute_ids(control_->queues());
    if (queues.empty()) return refuse("it has no queue that runs kernels", now_ns + limits_.retry_ns);
    suspension_.emplace(*control_, queues);
    off_since_ns_ = weir::now_ns();
    took_ns_ = off_since_ns_ - began_ns;
    use_.is_in_use = use_.is_off = true;
    use_.reason.clear();
    ++use_.times_off;
  }

  void resume() {
    const std::int64_t began_ns = weir::now_ns();
    const std::int64_t suspend_ns = suspension_->took_ns();
    const std::int64_t resume_ns = suspension_->resume().took_ns;
    suspension_.reset();
    came_back();
    use_.cost_ns += suspend_ns + resume_ns;
    const std::int64_t ended_ns = weir::now_ns();
    pace_.resumed(ended_ns, took_ns_ + (ended_ns - began_ns));
  }

  void refuse(std::string why, std::int64_t retry_ns) {
    let_go();
    leave_ns_ = weir::now_ns() + limits_.retry_ns;
    use_.is_in_use = false;
    use_.reason = std::move(why);
    retry_ns_ = retry_ns;
  }

  void came_back() {
    if (use_.is_off) use_.off_ns += weir::now_ns() - off_since_ns_;
    use_.is_off = false;
  }

  kfd::DebugTrap& trap_;
  const Limits& limits_;
  const int pid_;
  SuspendPace pace_;
  MechanismUse use_;
  bool is_leaving_ = false;  // let_go() was called, and is not done
  std::int64_t retry_ns_ = 0, wanted_ns_ = 0, off_since_ns_ = 0, leave_ns_ = 0;
  std::int64_t took_ns_ = 0;  // to suspend it, with all calls about that
  std::optional<kfd::QueueControl> control_;
  std::optional<kfd::Suspension> suspension_;  // after control_, which it uses
};

QueueSuspender::QueueSuspender(std::unique_ptr<kfd::DebugTrap> trap, const Settings& settings)
    : QueueSuspender(std::move(trap), settings, Limits{}) {}

QueueSuspender::QueueSuspender(std::unique_ptr<kfd::DebugTrap> trap, const Settings& settings, const Limits& limits)
    : trap_(std::move(trap)), settings_(settings), limits_(limits) {
  // Signals to the daemon are for its own thread.
  sigset_t all, before;
  sigfillset(&all);
  for (const int crash : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigdelset(&all, crash);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

QueueSuspender::~QueueSuspender() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void QueueSuspender::join(int seat, int pid) {
  const std::lock_guard lock(mutex_);
  Place& place = places_[static_cast<std::size_t>(seat)];
  place = {.pid = pid, .tenant = ++changes_, .use = {}};
  place.use.reason = kNotTried;
}

void QueueSuspender::leave(int seat) {
  {
    const std::lock_guard lock(mutex_);
    places_[static_cast<std::size_t>(seat)] = {};
    waiting_ &= ~(std::uint64_t{1} << seat);
    ++changes_;
  }
  changed_.notify_one();
}

void QueueSuspender::hold(std::uint64_t waiting, std::int64_t now_ns) {
  {
    const std::lock_guard lock(mutex_);
    renewed_ns_ = now_ns;
    if (waiting_ == waiting) return;
    waiting_ = waiting;
    ++changes_;
  }
  changed_.notify_one();
}

MechanismUse QueueSuspender::use(int seat) const {
  const std::lock_guard lock(mutex_);
  return places_[static_cast<std::size_t>(seat)].use;
}

void QueueSuspender::serve() {
  std::array<std::unique_ptr<Target>, kMaxClients> targets;
  std::vector<std::unique_ptr<Target>> leaving;  // of clients that have left
  std::array<std::uint64_t, kMaxClients> tenants{};
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const std::uint64_t seen = changes_;
    std::int64_t next = kNever;
    for (std::size_t seat = 0; seat < targets.size(); ++seat) {
      // A daemon that has stopped deciding must not keep anybody off the device.
      if (now_ns() - renewed_ns_ > limits_.silent_ns) waiting_ = 0;
      const auto [pid, tenant, unused] = places_[seat];
      const bool must_wait = tenant != 0 && (waiting_ >> seat & 1) != 0;
      if (targets[seat] == nullptr && !must_wait) continue;
      lock.unlock();  // the driver takes its time
      // So that nobody's signals wait for the driver's calls about several others.
      for (const auto& target : targets)
        if (target != nullptr) target->attend();
      if (tenants[seat] != tenant && targets[seat] != nullptr && !targets[seat]->let_go())
        leaving.push_back(std::move(targets[seat]));
      if (tenants[seat] != tenant) targets[seat].reset();
      tenants[seat] = tenant;
      if (must_wait && targets[seat] == nullptr)
        targets[seat] = std::make_unique<Target>(*trap_, limits_, settings_.slice_ns, pid);
      if (targets[seat] != nullptr) next = std::min(next, targets[seat]->serve(must_wait, now_ns()));
      lock.lock();
      if (targets[seat] != nullptr && places_[seat].tenant == tenant) places_[seat].use = targets[seat]->use();
    }
    if (!leaving.empty()) {
      lock.unlock();
      std::erase_if(leaving, [&](const auto& target) { return target->serve(false, now_ns()) == kNever; });
      lock.lock();
      if (!leaving.empty()) next = std::min(next, now_ns() + limits_.attend_ns);
    }
    if (waiting_ != 0) next = std::min(next, renewed_ns_ + limits_.silent_ns + 1);
    const auto is_due = [&] { return is_ending_ || changes_ != seen; };
    if (next == kNever)
      changed_.wait(lock, is_due);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(next - now_ns(), 0)), is_due);
  }
  lock.unlock();
  // All are resumed before anybody's process is waited for; on this thread, which is the tracer.
  for (auto& target : targets)
    if (target != nullptr) target->free_queues();
  for (auto& target : targets) target.reset();
}

}  // namespace weir::scheduler
