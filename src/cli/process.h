// What this process was started with: arguments, environment, terminal, and (base/stop.h) signals. Only src/cli may use
// it.
#pragma once

#include <filesystem>
#include <memory>
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

// Set for ranks by the process that starts them, where its stderr is a terminal: the launcher puts a pipe between.
inline constexpr const char* kTerminalVariable = "WEIR_TERMINAL";

// One line on stderr that is rewritten in place where stderr is a terminal. Elsewhere one line for each stage, once the
// command has taken two seconds (rank 0 of a job: at once, its runs take long), and fewer the longer it takes. Nothing
// with --quiet.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view what, int done, int total);
  void clear();

 private:
  enum class Form { none, line, stages };
  struct Stages;
  Form form_ = Form::none;
  bool is_shown_ = false;
  std::unique_ptr<Stages> stages_;
};

}  // namespace weir::cli
