// A program of the user's that runs under us: standard input, output, errors and the terminal are its own, signals that
// are sent to us go on to it, its exit code is ours. Knows nothing of what we want with it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace weir::cli {

// Where the program is that a shell would run; nothing where there is none.
std::optional<std::filesystem::path> find_program(const std::string& name);

// What stands after "--" on our command line: the user's program with its own flags. Nothing where there is no "--".
std::optional<std::vector<std::string>> words_behind_mark();

// Something to do beside a program: called with its process id right after its start, and again when the time that
// the call returned (on now_ns) has come.
using Beside = std::function<std::int64_t(pid_t)>;

// Passes on what is sent to us while it lives. What was ignored (nohup) stays so, for the program as well, which would
// lose that if we handled it. One at a time.
class Forwarding {
 public:
  Forwarding();
  ~Forwarding();
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;

  // Runs the program to its end: exit code, or 128 + signal. Rejects one that cannot be executed.
  int run(const std::vector<std::string>& command, const Variables& variables, const Beside& beside = {});
  // A signal that asks to end came since the last call; 0: none.
  static int take_signal();

 private:
  // The last two are for our own limits of time and of files: ending by them would leave things undone.
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
  struct sigaction before_[8] = {};
};

}  // namespace weir::cli
