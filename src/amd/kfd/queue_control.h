// Suspends and resumes queues of a process through the driver's debugger interface. Owns the order of calls that the
// driver requires, the meaning of its answers, and the guarantee that nothing stays suspended. Knows no kernels and no
// clocks of its own.
//
// On devices whose queues the firmware schedules by a run list (CPSCH), one suspend takes every dynamic queue of that
// GPU off the hardware and puts the others back: all programs on it pause for that moment, not only the target.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "amd/kfd/debug_trap.h"

namespace weir::kfd {

// What users must know before they allow queues to be suspended.
inline constexpr std::string_view kSuspendNotice =
    "suspending one queue unmaps and remaps every dynamic queue of that GPU (CPSCH), so all its programs pause briefly";

// The outcome of one suspend for each queue.
struct SuspendOutcome {
  std::vector<std::uint32_t> suspended;
  std::vector<std::uint32_t> failed;   // not released by the hardware; the driver counts them as suspended
  std::vector<std::uint32_t> invalid;  // not this process's, or being destroyed
  std::int64_t took_ns = 0;
  bool is_whole() const noexcept { return failed.empty() && invalid.empty(); }
};

struct ResumeOutcome {
  std::vector<std::uint32_t> resumed;
  std::vector<std::uint32_t> gone;  // destroyed in the meantime
  std::int64_t took_ns = 0;
};

// Resumes the target's queues if this process ends while they are suspended. Otherwise their owner hangs, because
// destroying a suspended queue waits until it is resumed. Covers signals that end the process, and exit(). After
// SIGKILL the driver does it: it disables the interface when the memory of its user goes (upstream kfd_process.c).
//
// Signals that the program handles itself (SIGINT, SIGTERM and the like) are left to it; its destructors then run. A
// forked child resumes nothing.
class ResumeGuard {
 public:
  // Fails if too many are in use. The trap must outlive it.
  ResumeGuard(DebugTrap& trap, int pid);
  ~ResumeGuard();
  ResumeGuard(const ResumeGuard&) = delete;
  ResumeGuard& operator=(const ResumeGuard&) = delete;

 private:
  int seat_ = -1;
};

// Controls one process. Every call throws when the driver refuses, with advice.
class QueueControl {
 public:
  // Attaches to another process, or registers this one's runtime; then enables the interface. Undoes everything if one
  // step is refused. For another process, all calls must come from the thread that constructed this object.
  QueueControl(DebugTrap& trap, int pid);
  // Resumes suspended queues, and detaches from the process.
  ~QueueControl();
  QueueControl(const QueueControl&) = delete;
  QueueControl& operator=(const QueueControl&) = delete;

  // All queues of the process. Afterwards none of them is new, so all can be suspended.
  std::vector<QueueSnapshot> queues();
  // Takes 1 to 1024 distinct ids, none of them suspended. The queues that the driver suspends stay so until resume(),
  // even if others failed. `grace_period` in 1000 GPU clocks: how long waves may continue before they are saved.
  SuspendOutcome suspend(const std::vector<std::uint32_t>& ids, std::uint32_t grace_period = 0);
  // Resumes everything that suspend() touched. Even if it throws, nothing stays suspended unless the error reports it.
  ResumeOutcome resume();
  bool has_suspended() const noexcept { return !touched_.empty(); }
  // Resumes everything and disables the interface, which takes the driver alone. Whether nothing is suspended now.
  bool free_queues() noexcept;
  // That, and detaches. False where the driver refuses, or the process does not stop for it: call attend() and this
  // again. Nothing else may be called from then on.
  bool let_go() noexcept;

 private:
  struct Nothing {};
  QueueControl(DebugTrap& trap, int pid, Nothing) : trap_(trap), pid_(pid) {}
  void check_thread() const;
  void forget() noexcept;

  DebugTrap& trap_;
  int pid_;
  std::thread::id thread_ = std::this_thread::get_id();
  bool is_attached_ = false, has_runtime_ = false, is_enabled_ = false;
  std::set<std::uint32_t> touched_;  // passed to suspend() since the last resume()
  std::optional<ResumeGuard> guard_;
};

// Suspends queues for its lifetime. Throws if one of them cannot be suspended, and leaves none suspended then.
class Suspension {
 public:
  Suspension(QueueControl& control, const std::vector<std::uint32_t>& ids);
  ~Suspension();
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;
  ResumeOutcome resume();
  std::int64_t took_ns() const noexcept { return took_ns_; }

 private:
  QueueControl& control_;
  std::int64_t took_ns_ = 0;
};

// The steps that the driver may refuse, for explain().
enum class TrapStep : std::uint8_t { version, attach, runtime, enable, snapshot, suspend, resume };
struct Refusal {
  std::string what, hint;
};
// The meaning of a negative result at a step, in the order of the driver's own checks, and advice.
Refusal explain(TrapStep step, int error, int pid, bool is_self);

}  // namespace weir::kfd
