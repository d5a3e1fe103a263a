// weir record: a flight recorder for any GPU program: keeps its last seconds, in a file that survives its death.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <filesystem>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/record_flags.h"
#include "run/record_program.h"

namespace weir::cli {
namespace {

constexpr const char* kRecordUsage = "For example: weir record -- python3 train.py";

struct RecordFlags {
  std::vector<std::string> program;
  std::string output, memory = "64M", hang, on_hang = "continue", slow, stall, signal, dumps = "5", metrics,
                      interval = "5s";
  bool keeps = false, is_exact = false, begins_off = false, is_quiet = false;
  std::shared_ptr<std::function<int()>> below;

  void add_to(CommandSyntax syntax) {
    syntax.add("program WORD", program, "after --: your program and its arguments");
    syntax.add("--output,-o FOLDER", output, "a new folder for recordings and dumps, which stay");
    syntax.add("--keep", keeps, "keep the recordings also where the program ends well");
    syntax.add("--memory SIZE", memory, "of the recording of each process: what is older is overwritten");
    syntax.add("--exact", is_exact, "the device's own times of every command (costs more)");
    syntax.add("--off", begins_off, "begin switched off: `weir record on PID` starts it");
    syntax.add("--hang-timeout DURATION", hang, "say why, where nothing has moved in any process for that long");
    syntax.add("--on-hang NAME", on_hang, "after that: continue, or kill the program and exit 1")
        .one_of({"continue", "kill"});
    syntax.add("--slow-step FACTOR", slow, "dump where a step takes that many times the median");
    syntax.add("--stall DURATION", stall, "dump where commands are outstanding and none has ended for that long");
    syntax
        .add("--dump-signal NAME", signal, "dump when `weir record` gets that signal, which is then not the program's")
        .one_of({"USR1", "USR2"});
    syntax.add("--dumps N", dumps, "most dumps; those of several processes within 5 s count as one");
    syntax.add("--openmetrics PATH", metrics, "rewrite this file with figures of each process, for Prometheus");
    syntax.add("--interval DURATION", interval, "how often that file is rewritten");
    syntax.add("--quiet,-q", is_quiet, "print only dumps, hangs and errors");
    below = syntax.add_commands(record_commands());
    syntax.footer("Exit code: the program's, or 128 + signal; 1 where --on-hang kill ended it, 2 bad input.");
  }
};

// Without --: a command that is not there, or a program.
[[noreturn]] void reject_word(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const CliCommand& command : record_commands()) names.emplace_back(command.name);
  if (const auto meant = nearest(words[0], names))
    reject(fmt::format("record: unknown command '{}'", words[0]), fmt::format("Did you mean '{}'?", *meant));
  reject(fmt::format("{}: a program goes after --", words[0]),
         fmt::format("Write weir record -- {}", fmt::join(words, " ")));
}

int execute_record(RecordFlags flags) {
  if (*flags.below) return (*flags.below)();
  const auto words = words_after_mark();
  if (!words && !flags.program.empty()) reject_word(flags.program);
  if (!words || words->empty()) reject("a program is required after --", kRecordUsage);
  if (flags.program.size() > words->size())
    reject(fmt::format("{}: unexpected word before --", flags.program[0]), kRecordUsage);
  RecordRequest request;
  request.command = *words;
  request.roots = own_record_roots();
  if (!flags.output.empty()) request.folder = flags.output;
  request.bytes = size_of("--memory", flags.memory, std::uint64_t{1} << 20, std::uint64_t{2} << 30);
  request.is_exact = flags.is_exact;
  request.begins_off = flags.begins_off;
  request.keeps = flags.keeps;
  request.is_quiet = flags.is_quiet;
  const auto ns_of = [](const char* flag, const std::string& text) {
    return text.empty() ? 0 : static_cast<std::int64_t>(seconds_of(flag, text) * 1e9);
  };
  request.triggers.hang_ns = ns_of("--hang-timeout", flags.hang);
  request.triggers.stall_ns = ns_of("--stall", flags.stall);
  if (!flags.slow.empty())
    request.triggers.slow_step = real_number("--slow-step", flags.slow, 1.01, 1e6, "out of range");
  request.triggers.dumps = static_cast<int>(number_within("--dumps", flags.dumps, 1, 1000));
  if (!flags.signal.empty()) request.triggers.signal = flags.signal == "USR1" ? SIGUSR1 : SIGUSR2;
  request.triggers.kills_on_hang = flags.on_hang == "kill";
  if (request.triggers.kills_on_hang && request.triggers.hang_ns == 0)
    reject("--on-hang kill: nothing looks for hangs", "Add --hang-timeout 60s.");
  request.metrics = flags.metrics;
  request.metrics_interval_ns = ns_of("--interval", flags.interval);
  request.cuda_injection = environment_variable("CUDA_INJECTION64_PATH");
  request.has_nvtx_injection = environment_variable("NVTX_INJECTION64_PATH").has_value();
  request.preload = environment_variable("LD_PRELOAD").value_or("");
  request.say = [](const std::string& text) { print_err("weir: {}\n", text); };
  if (!find_program(request.command[0]))
    reject(fmt::format("{}: no such program", request.command[0]), "Give a path, or a name that PATH has.");
  return record_program(request);
}

}  // namespace

CliCommand record() {
  return command("record", "keep the last seconds of any GPU program, for days: a flight recorder", execute_record);
}

}  // namespace weir::cli
