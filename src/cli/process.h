// What this process was started with: arguments, environment, terminal, and (base/stop.h) signals. Only src/cli may use
// it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "run/runner.h"

namespace weir::cli {

void remember_process(std::vector<std::string> words);

// What the user typed, in new spellings, the program's name first.
const std::vector<std::string>& own_arguments();

// Command line and environment, as recorded in every result.
RunContext run_context();

// The words after "--": a program of the user with its own flags. Empty where there is no "--".
std::optional<std::vector<std::string>> words_after_mark();

std::optional<std::string> environment_variable(const char* name);
// The program that a shell would run; empty where there is none.
std::optional<std::filesystem::path> find_program(const std::string& name);

// main() turns the exit code of an interrupted command into 143 where the signal was SIGTERM, 129 where it was SIGHUP.
int exit_code(int code);

// One line on stderr that is rewritten in place, only if stderr is a terminal and --quiet was not given.
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
