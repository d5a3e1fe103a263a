// weir sched run: runs a program as a client of the daemon. The program replaces this process, so that exit code,
// signals and terminal are its own; the driver or the loader loads the library that holds its launches.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/console.h"
#include "base/error.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/sched_flags.h"
#include "run/children.h"
#include "submit/sched/ask.h"
#include "submit/sched/connection.h"

namespace weir::cli {
namespace {

constexpr const char* kCudaGate = "libweir_cupti.so";    // loaded by the CUDA driver
constexpr const char* kHipGate = "libweir_hip_gate.so";  // loaded before HIP's runtime
constexpr const char* kUsage = "For example: weir sched run --priority high -- ./program arguments";

struct SchedRunFlags {
  SocketFlag socket;
  TermsFlags terms;
  std::vector<std::string> program;
  bool is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("program WORD", program, "after --: the program and its arguments");
    terms.add_to(syntax);
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

// LD_PRELOAD is a list, so no path in it may contain a separator.
bool fits_preload(const std::string& path) { return path.find_first_of(": ") == std::string::npos; }

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
  if (hip && !fits_preload(hip->string())) {
    notes.push_back(fmt::format("{}: LD_PRELOAD takes no path with a blank or a colon, so HIP programs are not held",
                                hip->string()));
  } else if (hip) {
    const std::string before = environment_variable("LD_PRELOAD").value_or("");
    const bool is_there = before.find(hip->string()) != std::string::npos;
    if (!is_there) variables.emplace_back("LD_PRELOAD", hip->string() + (before.empty() ? "" : ":" + before));
  }
  return variables;
}

int execute_sched_run(const SchedRunFlags& flags) {
  const scheduler::Terms terms = flags.terms.terms();
  std::vector<std::string> program = program_of(flags);
  const std::filesystem::path socket = flags.socket.path();
  scheduler::ask_status(socket);  // throws where no daemon answers
  std::vector<std::string> notes;
  for (const auto& [name, value] : variables_of(socket, terms, notes)) ::setenv(name.c_str(), value.c_str(), 1);
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
