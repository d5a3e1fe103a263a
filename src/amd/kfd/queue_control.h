// Stops queues of a process and lets them go on, through the driver's interface for debuggers. Owns the order of calls
// that the driver asks for, what its answers mean, and that nothing stays suspended. Knows no kernels and no clocks of
// its own.
//
// On devices whose queues the firmware schedules by a run list (CPSCH), one suspend takes every dynamic queue of that
// GPU off the hardware and puts the others back: all programs on it pause for that moment, not only the one that was
// meant.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "amd/kfd/debug_trap.h"

namespace weir::kfd {

// What users have to know before they let anybody suspend queues.
inline constexpr std::string_view kSuspendNotice =
    "suspending one queue unmaps and remaps every dynamic queue of that GPU (CPSCH), so all its programs pause briefly";

// How one suspend ended, queue by queue.
struct SuspendOutcome {
  std::vector<std::uint32_t> suspended;
  std::vector<std::uint32_t> failed;   // the hardware did not let go of them; the driver counts them as suspended
  std::vector<std::uint32_t> invalid;  // not this process's, or being destroyed
  std::int64_t took_ns = 0;
  bool is_whole() const noexcept { return failed.empty() && invalid.empty(); }
};

struct ResumeOutcome {
  std::vector<std::uint32_t> resumed;
  std::vector<std::uint32_t> gone;  // destroyed meanwhile
  std::int64_t took_ns = 0;
};

// What has to happen when this process ends while queues are suspended: they are resumed, or their owner hangs, because
// destroying a suspended queue waits for its resumption. Covers signals that end the process and exit(). After SIGKILL
// it is left to the driver, which disables the interface when its user's memory goes (upstream kfd_process.c).
//
// While one of these lives, whatever ends this process resumes the target's queues first. Signals that the program
// handles by itself (SIGINT, SIGTERM and the like) are left to it: then destructors run. A forked child resumes
// nothing.
class ResumeGuard {
 public:
  // Fails where too many are in use. The trap has to outlive it.
  ResumeGuard(DebugTrap& trap, int pid);
  ~ResumeGuard();
  ResumeGuard(const ResumeGuard&) = delete;
  ResumeGuard& operator=(const ResumeGuard&) = delete;

 private:
  int seat_ = -1;
};

// One process under control. Every call throws what the driver refused, with what to do about it.
class QueueControl {
 public:
  // Attaches to another process, or says that this one's runtime is there; enables the interface. Undoes all of it
  // where one step is refused. For another process all calls belong on the thread that made this.
  QueueControl(DebugTrap& trap, int pid);
  // Resumes what is suspended, and lets the process go.
  ~QueueControl();
  QueueControl(const QueueControl&) = delete;
  QueueControl& operator=(const QueueControl&) = delete;

  // All queues of the process. None of them is new afterwards, so all can be suspended.
  std::vector<QueueSnapshot> queues();
  // The driver takes 1 to 1024 ids, each once, none of them suspended. What it suspended stays so until resume(), also
  // where others failed. `grace_period` in 1000 GPU clocks: how long waves may go on before they are saved.
  SuspendOutcome suspend(const std::vector<std::uint32_t>& ids, std::uint32_t grace_period = 0);
  // Everything that suspend() touched. Nothing is suspended afterwards even where it throws, unless it says so.
  ResumeOutcome resume();
  bool has_suspended() const noexcept { return !touched_.empty(); }

 private:
  struct Nothing {};
  QueueControl(DebugTrap& trap, int pid, Nothing) : trap_(trap), pid_(pid) {}
  void check_thread() const;
  void forget() noexcept;

  DebugTrap& trap_;
  int pid_;
  std::thread::id thread_ = std::this_thread::get_id();
  bool is_attached_ = false, has_runtime_ = false, is_enabled_ = false;
  std::set<std::uint32_t> touched_;  // asked to be suspended since the last resume()
  std::optional<ResumeGuard> guard_;
};

// Queues suspended for as long as this lives. Throws where one of them cannot be, and has none suspended then.
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

// The steps at which the driver may refuse, for explain().
enum class TrapStep : std::uint8_t { version, attach, runtime, enable, snapshot, suspend, resume };
struct Refusal {
  std::string what, hint;
};
// What a negative result means at a step, by the order in which the driver looks at things, and what to do.
Refusal explain(TrapStep step, int error, int pid, bool is_self);

}  // namespace weir::kfd
