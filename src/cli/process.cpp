#include "cli/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/console.h"
#include "base/text_gate.h"
#include "cli/scheduled.h"
#include "measure/environment.h"

extern char** environ;

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> arguments;
// Read by polling loops; order does not matter.
std::atomic<bool> is_interrupted{false}, is_only_counted{false};
std::atomic<int> interrupts{0}, first_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

void on_signal(int signal) {
  if (!is_interrupted.exchange(true, std::memory_order_relaxed)) {
    first_signal.store(signal, std::memory_order_relaxed);
  } else if (signal == SIGUSR1) {
    return;
  } else if (!is_only_counted.load(std::memory_order_relaxed)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  interrupts.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void remember_process(int argc, char** argv) { arguments.assign(argv, argv + argc); }

const std::vector<std::string>& own_arguments() { return arguments; }

std::optional<std::vector<std::string>> words_after_mark() {
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return std::nullopt;
  return std::vector<std::string>(mark + 1, arguments.end());
}

RunContext run_context() {
  std::vector<std::string> variables;
  for (char** line = environ; *line != nullptr; ++line) variables.emplace_back(*line);
  Json environment = describe_environment(variables);
  if (Json facts = scheduling_facts(); !facts.is_null()) environment["scheduler"] = std::move(facts);
  return {arguments, std::move(environment)};
}

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<fs::path> find_program(const std::string& name) {
  const auto is_program = [](const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return is_program(name) ? std::optional<fs::path>(name) : std::nullopt;
  const std::string path = environment_variable("PATH").value_or("/usr/bin:/bin");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    if (const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name; is_program(candidate))
      return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);  // the signal that asks ranks to stop
  return is_interrupted;
}

const std::atomic<int>& count_interrupts() {
  is_only_counted.store(true, std::memory_order_relaxed);
  catch_interrupts();
  return interrupts;
}

int exit_code(int code) {
  return code == kExitInterrupted && first_signal.load(std::memory_order_relaxed) == SIGTERM ? 128 + SIGTERM : code;
}

ProgressLine::ProgressLine(bool is_quiet) : is_on_(!is_quiet && isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(std::string_view what, int done, int total) {
  if (!is_on_) return;
  constexpr int kCells = 24;
  const int filled = total > 0 ? std::min(kCells, kCells * done / total) : 0;
  std::string bar(static_cast<std::size_t>(filled), '#');
  bar.resize(kCells, '.');
  write_raw_err(fmt::format("\r\x1b[K[{}] {} {}/{}", bar, for_line(what), done, total));
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  write_raw_err("\r\x1b[K");
  is_shown_ = false;
}

}  // namespace weir::cli
