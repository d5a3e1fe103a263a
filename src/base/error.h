// The one exception type of the project. Knows exit codes; never prints.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weir {

// The kind of fault decides the exit code: `run` exits 1, `input` exits 2.
enum class Fault : int { run = 1, input = 2 };
// The exit code of a command that was interrupted.
inline constexpr int kExitInterrupted = 130;

// Thrown by cold code. `what()` describes the problem, `hint` what the user can do about it (may be empty).
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& what, std::string hint = {},
        std::source_location where = std::source_location::current())
      : std::runtime_error(what), fault(fault), hint(std::move(hint)), where(where) {}

  Fault fault;
  std::string hint;
  // The setting whose value was refused ("hw_queues"); what() begins with it. cli prints the flag's name in its place,
  // readers of files the path in the file. Empty: the error is not about a setting.
  std::string setting;
  std::source_location where;
};

// The user gave unusable input: exit 2.
[[noreturn]] inline void reject(const std::string& what, std::string hint = {},
                                std::source_location where = std::source_location::current()) {
  throw Error(Fault::input, what, std::move(hint), where);
}

// The user gave an unusable value for a setting: exit 2. what() is "SETTING VALUE: PROBLEM", or "SETTING: PROBLEM"
// where there is no value to show.
[[noreturn]] inline void reject_setting(std::string_view setting, std::string_view value, std::string_view problem,
                                        std::string hint = {},
                                        std::source_location where = std::source_location::current()) {
  std::string what(setting);
  if (!value.empty()) (what += ' ') += value;
  (what += ": ") += problem;
  Error error(Fault::input, what, std::move(hint), where);
  error.setting = setting;
  throw error;
}

// Something failed during the work: exit 1.
[[noreturn]] inline void fail(const std::string& what, std::string hint = {},
                              std::source_location where = std::source_location::current()) {
  throw Error(Fault::run, what, std::move(hint), where);
}

}  // namespace weir
