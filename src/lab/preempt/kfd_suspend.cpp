// The victim is another process, whose queues AMD's kernel driver takes off the hardware while the intruder is there:
// running waves are saved and restored (CWSR).
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "amd/kfd/text.h"
#include "base/error.h"
#include "lab/preempt/arena.h"
#include "lab/preempt/intruder.h"
#include "lab/preempt/list.h"
#include "lab/preempt/suspended_visits.h"

namespace weir::preempt::mechanism_list {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> word_in(const fs::path& path) {
  kfd::ReadText read = kfd::read_text(path, 4096);
  if (!read.text) return std::nullopt;
  while (!read.text->empty() && read.text->back() == '\n') read.text->pop_back();
  return read.text;
}

Capability offered_kfd_suspend(Device& device) {
  const DeviceInfo info = device.info();
  if (const Capability can = can_observe(info); !can) return can;
  std::string reason;
  const auto trap = kfd::open_debug_trap(&reason);
  if (trap == nullptr) return lacking(reason);
  SuspendFacts facts{info.backend, {}, {}, {}};
  trap->version(&facts.version);
  facts.sched_policy = word_in("/sys/module/amdgpu/parameters/sched_policy");
  facts.ptrace_scope = word_in("/proc/sys/kernel/yama/ptrace_scope");
  return can_suspend(facts);
}

bool uses_kfd(int pid) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), ignored))
    if (fs::read_symlink(entry.path(), ignored) == "/dev/kfd") return true;
  return false;
}

// /proc/self/task/1234/children: "2345 2346 "
int victim_process() {
  std::vector<int> found;
  std::error_code ignored;
  for (const auto& task : fs::directory_iterator("/proc/self/task", ignored)) {
    const std::string text = word_in(task.path() / "children").value_or("");
    kfd::Cursor cursor(text);
    for (int pid = 0; cursor.take(pid); cursor.take(" "))
      if (uses_kfd(pid)) found.push_back(pid);
  }
  if (found.size() != 1)
    fail(fmt::format("{} processes that this one has started use /dev/kfd: the victim has to be the only one",
                     found.size()));
  return found.front();
}

class ArenaVisitor final : public Visitor {
 public:
  ArenaVisitor(Arena& arena, Intruder& intruder) : arena_(arena), intruder_(intruder) {}
  std::int64_t now_ns() noexcept override { return arena_.now_ns(); }
  void wait_until(std::int64_t ns) noexcept override {
    constexpr std::int64_t kWakeEarlyNs = 100'000;  // polls the clock for the rest
    const std::int64_t asleep_ns = ns - kWakeEarlyNs;
    const timespec until{asleep_ns / 1'000'000'000, asleep_ns % 1'000'000'000};
    if (asleep_ns > arena_.now_ns()) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    while (arena_.now_ns() < ns) {
    }
  }
  std::int64_t send(std::int64_t now_ns) noexcept override { return intruder_.send(now_ns); }
  bool has_pending() noexcept override { return intruder_.ended() < intruder_.arrived(); }

 private:
  Arena& arena_;
  Intruder& intruder_;
};

Observation observe_kfd_suspend(const Experiment& experiment, const Victim*) {
  const ExperimentPlan& plan = *experiment.plan;
  std::string reason;
  const auto trap = kfd::open_debug_trap(&reason);
  if (trap == nullptr) fail("queues cannot be suspended: " + reason);
  kfd::QueueControl victim(*trap, victim_process());
  // With the victim suspended: kernels are loaded and clocks compared while nothing else runs.
  std::optional<kfd::Suspension> quiet(std::in_place, victim, compute_queues(victim));
  Arena arena(*experiment.device, {.requests = plan.requests, .intruder_ns = plan.intruder_ns});
  const KernelClockFix before = arena.fix_clock();
  quiet.reset();
  std::vector<std::int64_t> due_ns = due_times(plan);
  const std::int64_t first_ns = due_ns.empty() ? kNoTime : due_ns.front();
  Intruder intruder(arena, std::move(due_ns), false);
  ArenaVisitor visitor(arena, intruder);
  const std::int64_t begin_ns = arena.now_ns();
  intruder.begin(begin_ns);
  const Visits visits = serve(visitor, first_ns == kNoTime ? kNoTime : begin_ns + first_ns, victim, [&] {
    return !experiment.progress || experiment.progress("requests", intruder.ended(), plan.requests);
  });
  arena.finish();
  quiet.emplace(victim, compute_queues(victim));
  const ClockLine clock(before, arena.fix_clock());
  quiet.reset();
  Observation found;
  found.requests = intruder.requests(clock);
  found.clock_error_ns = clock.error_ns();
  found.preemptions = visits.suspend_ns.size();
  found.suspend_ns = visits.suspend_ns;
  found.resume_ns = visits.resume_ns;
  return found;
}

}  // namespace

Mechanism kfd_suspend() {
  return {.name = "kfd_suspend",
          .level = "Lv3",
          .summary = "the driver takes the victim's queues off the GPU; every other queue there pauses, too",
          .offered = offered_kfd_suspend,
          .observe = observe_kfd_suspend,
          .is_between_processes = true};
}

}  // namespace weir::preempt::mechanism_list
