// The one exception type of the project. Knows exit codes; never prints.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace weir {

// The kind of fault decides the exit code: `run` exits 1, `input` exits 2.
enum class Fault : int { run = 1, input = 2 };

// Thrown by cold code. `what()` describes the problem, `hint` what the user can do about it (may be empty).
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& what, std::string hint = {},
        std::source_location where = std::source_location::current())
      : std::runtime_error(what), fault(fault), hint(std::move(hint)), where(where) {}

  Fault fault;
  std::string hint;
  std::source_location where;
};

// The user gave unusable input: exit 2.
[[noreturn]] inline void reject(const std::string& what, std::string hint = {},
                                std::source_location where = std::source_location::current()) {
  throw Error(Fault::input, what, std::move(hint), where);
}

// Something failed during the work: exit 1.
[[noreturn]] inline void fail(const std::string& what, std::string hint = {},
                              std::source_location where = std::source_location::current()) {
  throw Error(Fault::run, what, std::move(hint), where);
}

}  // namespace weir
