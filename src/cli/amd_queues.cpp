// weir amd queues: the queues of a process that runs, through the driver's debug interface; suspends and resumes them
// where that is asked for.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "amd/kfd/queue_trial.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct AmdQueuesFlags : DocumentOutput {
  std::vector<std::string> queues;
  std::string pid, iterations = "1", hold = "10ms", pause = "100ms";
  bool suspends = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("pid PID", pid, "the process, by the number that it has here").required();
    syntax.add(
        "--suspend", suspends,
        "suspend its queues and resume them, round by round: every program on that GPU pauses for a moment, and the "
        "process for --hold");
    syntax.add("--queue N", queues, "repeatable: suspend this queue (default: all that run kernels)");
    syntax.add("--iterations N", iterations, "rounds");
    syntax.add("--hold DURATION", hold, "how long queues stay suspended in a round, 1s at most");
    syntax.add("--pause DURATION", pause, "from a round to the next");
    DocumentOutput::add_to(syntax);
    syntax.footer("Exit code: 0, 1 the driver refused, 2 bad input, 130 interrupted; nothing stays suspended.");
  }
};

int number_of(const char* flag, const std::string& text, std::int64_t lowest, std::int64_t highest) {
  return static_cast<int>(whole_number(flag, text, lowest, highest, "out of range",
                                       fmt::format("Use a whole number from {} to {}.", lowest, highest)));
}

// Sleeps in short pieces, so that Ctrl-C is noticed while queues are suspended.
bool wait_for_stop(std::int64_t ns, const std::atomic<bool>& stop) {
  constexpr std::int64_t kPieceNs = 20'000'000;
  for (const std::int64_t end = now_ns() + ns; now_ns() < end && !stop.load(std::memory_order_relaxed);) {
    const timespec piece{0, std::clamp<std::int64_t>(end - now_ns(), 0, kPieceNs)};
    ::nanosleep(&piece, nullptr);
  }
  return !stop.load(std::memory_order_relaxed);
}

int execute_amd_queues(const AmdQueuesFlags& flags) {
  flags.check_output();
  const int pid = number_of("pid", flags.pid, 1, std::numeric_limits<int>::max());
  const std::atomic<bool>& stop = catch_interrupts();
  kfd::QueueTrialPlan plan;
  plan.rounds = number_of("--iterations", flags.iterations, 1, 100'000);
  plan.suspends = flags.suspends;
  plan.hold_ns = duration_of("--hold", flags.hold, 1'000, 1'000'000'000);
  plan.pause_ns = duration_of("--pause", flags.pause, 1'000, 3'600'000'000'000);
  plan.wait = [&](std::int64_t ns) { return wait_for_stop(ns, stop); };
  if (!flags.queues.empty() && !flags.suspends) reject("--queue: is for --suspend", "Add --suspend, or leave it out.");
  for (const std::string& word : flags.queues)
    plan.ids.push_back(static_cast<std::uint32_t>(number_of("--queue", word, 0, kfd::kQueueIdBits)));
  std::string reason;
  const auto trap = kfd::open_debug_trap(&reason);
  if (trap == nullptr)
    reject(fmt::format("queues of process {} cannot be seen: {}", pid, reason),
           "`weir amd hqd --live` and `weir watch` show them without this interface.");
  const kfd::QueueTrial trial = kfd::try_queues(*trap, pid, plan);
  std::string name = read_kernel_file(fmt::format("/proc/{}/comm", pid), 64);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  const Json document = kfd::queue_trial_document(trial, plan, name);
  flags.print(document, amd_queues_report(document));
  return trial.is_stopped ? kExitInterrupted : 0;
}

}  // namespace

CliCommand amd_queues() {
  return command("queues", "the queues of a process that runs; suspend and resume them, and how long that takes",
                 execute_amd_queues);
}

}  // namespace weir::cli
