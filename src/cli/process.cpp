#include "cli/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/console.h"
#include "base/file.h"
#include "base/secrets.h"
#include "base/text_gate.h"
#include "cli/ranks.h"
#include "cli/scheduled.h"
#include "measure/environment.h"

extern char** environ;

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kProgressPatienceNs = 2'000'000'000;

std::vector<std::string> arguments;
bool is_launched_on_terminal = false;

}  // namespace

void remember_process(std::vector<std::string> words) {
  arguments = std::move(words);
  is_launched_on_terminal = environment_variable(kTerminalVariable).has_value();
  ::unsetenv(kTerminalVariable);  // no fact about the run, so results must not record it
}

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
  return {recorded_command(arguments), std::move(environment)};
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
    // As Process does, only absolute folders: an empty one or "." is whatever folder this is started in.
    const std::string folder = path.substr(begin, end - begin);
    if (const fs::path candidate = fs::path(folder) / name; folder.starts_with('/') && is_program(candidate))
      return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

int exit_code(int code) {
  const int signal = first_interrupt();
  return code == kExitInterrupted && (signal == SIGTERM || signal == SIGHUP) ? 128 + signal : code;
}

// A stage may take minutes without a further call, so a thread writes its line.
struct ProgressLine::Stages {
  explicit Stages(std::int64_t patience_ns) : patience_ns_(patience_ns) {
    // Signals are for the threads that wait for children and devices.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      while (!stop.stop_requested()) {
        wake_.wait_for(lock, stop, std::chrono::milliseconds(250), [] { return false; });
        if (!stop.stop_requested()) print_if_due();
      }
    });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void show(std::string_view what, int done, int total) {
    const std::scoped_lock lock(mutex_);
    stage_ = what.ends_with(',') ? what.substr(0, what.size() - 1) : what;
    count_ = total > 1 ? fmt::format(", {} of {}", std::min(done + 1, total), total) : "";
    print_if_due();
  }

  // A stage that ended before its line was due gets none.
  void end() {
    const std::scoped_lock lock(mutex_);
    stage_ = printed_;
  }

 private:
  void print_if_due() {
    const std::int64_t now = now_ns();
    const std::int64_t pause_ns = patience_ns_ == 0 ? 0 : std::max(patience_ns_, (now - begun_ns_) / 20);
    if (stage_ == printed_ || now - printed_ns_ < pause_ns) return;
    print_err("weir: {}{}\n", for_line(stage_), count_);
    printed_ = stage_;
    printed_ns_ = now;
  }

  const std::int64_t patience_ns_, begun_ns_ = now_ns();
  std::int64_t printed_ns_ = begun_ns_;
  std::string stage_, count_, printed_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // the last member: it uses the others
};

ProgressLine::ProgressLine(bool is_quiet) {
  if (is_quiet) return;
  const bool is_terminal = isatty(STDERR_FILENO) == 1 || is_launched_on_terminal;
  form_ = is_terminal ? Form::line : Form::stages;
  if (!is_terminal) stages_ = std::make_unique<Stages>(job_ranks().count > 1 ? 0 : kProgressPatienceNs);
}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(std::string_view what, int done, int total) {
  if (form_ == Form::none) return;
  if (form_ == Form::stages) return stages_->show(what, done, total);
  constexpr int kCells = 24;
  const int filled = total > 0 ? std::min(kCells, kCells * done / total) : 0;
  std::string bar(static_cast<std::size_t>(filled), '#');
  bar.resize(kCells, '.');
  write_raw_err(fmt::format("\r\x1b[K[{}] {} {}/{}", bar, for_line(what), done, total));
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (stages_) stages_->end();
  if (!is_shown_) return;
  write_raw_err("\r\x1b[K");
  is_shown_ = false;
}

}  // namespace weir::cli
