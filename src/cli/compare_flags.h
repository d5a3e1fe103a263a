// The flags that comparisons share: what counts as a change, the output format, and the destination.
#pragma once

#include <string>

#include "cli/ci_flags.h"
#include "cli/command.h"
#include "run/compare.h"

namespace weir::cli {

struct CompareFlags {
  std::string threshold = "5%";
  std::string format = "text";
  std::string output;
  bool is_strict = false;
  bool is_forced = false;
  CiFlags ci;

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag, and an output that could not be written.
  CompareOptions options() const;
  // Prints or writes the comparison, and reports to CI systems; returns the exit code. `tool` is the command's name
  // there.
  int print(const Comparison& comparison, const char* tool) const;
};

}  // namespace weir::cli
