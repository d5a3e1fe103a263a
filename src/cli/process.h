// What this process was started with: arguments, environment, terminal, signals. Only src/cli may ask.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/runner.h"

namespace weir::cli {

void remember_process(int argc, char** argv);

// What the user typed, the program's name first.
const std::vector<std::string>& own_arguments();

// Command line and environment as every result carries them.
RunContext run_context();

std::optional<std::string> environment_variable(const char* name);

// From here on the first Ctrl-C (or SIGTERM, or SIGUSR1) sets the flag; a second one ends the program at once. SIGUSR1
// may come again: it only asks to stop, and launchers pass it on besides whoever sends it.
const std::atomic<bool>& catch_interrupts();
// The same, but a second one is only counted, for a caller that has processes to end first. Returns the count.
const std::atomic<int>& count_interrupts();

// What a command returns that was interrupted; main() makes it 143 where the signal was SIGTERM.
inline constexpr int kExitInterrupted = 130;
int exit_code(int code);

// One line on stderr that rewrites itself, only if stderr is a terminal and the user did not ask for quiet.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_quiet);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view what, int done, int total);
  void clear();

 private:
  bool is_on_;
  bool is_shown_ = false;
};

}  // namespace weir::cli
