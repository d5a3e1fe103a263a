// weir sched run: runs a program as a client of the daemon. The program replaces this process, so that exit code,
// signals and terminal are its own; the driver or the loader loads the library that holds its launches.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/sched_flags.h"
#include "report/text/fields.h"
#include "run/children.h"
#include "submit/sched/ask.h"
#include "submit/sched/connection.h"
#include "submit/sched/mechanism/list.h"

namespace weir::cli {
namespace {

constexpr const char* kCudaGate = "libweir_cupti.so";    // loaded by the CUDA driver, and before it for its hooks
constexpr const char* kHipGate = "libweir_hip_gate.so";  // loaded before HIP's runtime
constexpr const char* kUsage = "For example: weir sched run --priority high -- ./program arguments";

struct SchedRunFlags {
  SocketFlag socket;
  TermsFlags terms;
  std::string share;
  std::vector<std::string> program;
  bool is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("program WORD", program, "after --: the program and its arguments");
    terms.add_to(syntax);
    syntax.add("--share PERCENT", share, "of the device's threads at most: 80% (mechanisms over NVIDIA's MPS)");
    socket.add_to(syntax);
    syntax.add("--quiet,-q", is_quiet, "no notes");
  }
};

std::vector<std::string> program_of(const SchedRunFlags& flags) {
  const std::vector<std::string> program = words_after_mark().value_or(flags.program);
  if (program.empty()) reject("a program is required after --", kUsage);
  if (flags.program.size() > program.size())
    reject(fmt::format("{}: unexpected word before the program", flags.program[0]), kUsage);
  if (!find_program(program[0]))
    reject(fmt::format("{}: no such program", program[0]), "Give a path, or a name that PATH has.");
  return program;
}

// "80%", "80"; 0: not given
int share_of(const SchedRunFlags& flags) {
  if (flags.share.empty()) return 0;
  std::string_view number = flags.share;
  if (number.ends_with('%')) number.remove_suffix(1);
  const auto percent = parse_integer(number);
  if (!percent || *percent < 1 || *percent > 100)
    reject(fmt::format("--share {}: not a share", flags.share), "Use 1% to 100%.");
  if (flags.terms.is_isolated)
    reject(fmt::format("--share {}: a program with --isolate is in no MPS", flags.share), "Leave one of them out.");
  return static_cast<int>(*percent);
}

// What a client needs to find the daemon's MPS, and what it gets there. The driver reads these when it starts, so they
// hold for the program's whole life.
Variables mps_variables(const Json& status, const SchedRunFlags& flags, const scheduler::Terms& terms,
                        std::vector<std::string>& notes) {
  const int asked = share_of(flags);
  const Json& mps = fields::at(status, {"mps"});
  if (!mps.is_object()) {
    if (asked != 0)
      reject(fmt::format("--share {}: the daemon has no MPS", flags.share),
             "Start it with --mechanism mps_share, mps_priority, partition or auto, on a machine with an NVIDIA GPU.");
    return {};
  }
  if (terms.is_isolated) return {};
  Variables variables = {{scheduler::kMpsPipeVariable, fields::string(mps, {"pipe_folder"})},
                         {scheduler::kMpsLogVariable, fields::string(mps, {"log_folder"})}};
  const std::string name = fields::string(status, {"mechanism"});
  const auto known = scheduler::mechanisms();
  const auto mechanism =
      std::find_if(known.begin(), known.end(), [&](const scheduler::Mechanism& each) { return each.name == name; });
  const bool is_low = terms.priority < 0 && mechanism != known.end();
  if (is_low && mechanism->lowers_priority) variables.emplace_back("CUDA_MPS_CLIENT_PRIORITY", "1");
  const int share = asked != 0 ? asked : is_low ? mechanism->low_share_percent : 0;
  if (share != 0) variables.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(share));
  notes.emplace_back(
      "programs in an MPS share faults: an error of one on the GPU ends the work of all there; --isolate keeps out");
  return variables;
}

// Variables that would lead the program into an MPS.
constexpr std::array kMpsVariables = {scheduler::kMpsPipeVariable, scheduler::kMpsLogVariable,
                                      "CUDA_MPS_CLIENT_PRIORITY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"};

Variables variables_of(const std::filesystem::path& socket, const scheduler::Terms& terms,
                       std::vector<std::string>& notes) {
  Variables variables = {{scheduler::kSocketVariable, socket.string()},
                         {scheduler::kTermsVariable, scheduler::write_terms(terms)}};
  const auto cuda = own_library(kCudaGate);
  const auto hip = own_library(kHipGate);
  if (!cuda && !hip)
    notes.push_back(
        fmt::format("neither {} nor {} was built: only runs of weir itself are scheduled", kCudaGate, kHipGate));
  if (cuda) {
    const auto other = environment_variable("CUDA_INJECTION64_PATH");
    if (other && *other != cuda->string())
      notes.push_back(fmt::format("CUDA_INJECTION64_PATH was {}: that library is left out", *other));
    variables.emplace_back("CUDA_INJECTION64_PATH", cuda->string());
  }
  const std::string before = environment_variable("LD_PRELOAD").value_or("");
  const std::string preload = preloaded(before, {kHipGate, kCudaGate});
  if (preload != before) variables.emplace_back("LD_PRELOAD", preload);
  if (hip && preload.find(hip->string()) == std::string::npos)
    notes.push_back(fmt::format("{}: LD_PRELOAD takes no path with a blank or a colon, so HIP programs are not held",
                                hip->string()));
  return variables;
}

int execute_sched_run(const SchedRunFlags& flags) {
  const scheduler::Terms terms = flags.terms.terms();
  std::vector<std::string> program = program_of(flags);
  const std::filesystem::path socket = flags.socket.path();
  const Json status = scheduler::ask_status(socket);  // throws where no daemon answers
  std::vector<std::string> notes;
  Variables variables = variables_of(socket, terms, notes);
  const Variables mps = mps_variables(status, flags, terms, notes);
  // Also where another MPS is set there: it would be somebody else's, with their programs' faults.
  if (terms.is_isolated)
    for (const char* name : kMpsVariables) ::unsetenv(name);
  variables.insert(variables.end(), mps.begin(), mps.end());
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  if (!flags.is_quiet)
    for (const std::string& note : notes) print_err("weir: {}\n", note);
  std::vector<char*> words;
  for (std::string& word : program) words.push_back(word.data());
  words.push_back(nullptr);
  flush_out();
  restore_signals();
  ::execvp(words[0], words.data());
  reject(fmt::format("{}: cannot be executed: {}", program[0], std::strerror(errno)),
         errno == ENOENT ? "Is the interpreter that its first line names there?" : "");
}

}  // namespace

CliCommand sched_run() { return command("run", "run a program as a client of the daemon", execute_sched_run); }

}  // namespace weir::cli
