// The flags of a comparison: what counts as a change, the output format, and the destination.
#pragma once

#include <string>

#include "cli/ci_flags.h"
#include "cli/command.h"
#include "cli/document_output.h"
#include "run/compare.h"

namespace weir::cli {

struct CompareFlags {
  std::string threshold = "5%";
  bool is_strict = false;
  DocumentOutput document;
  CiFlags ci;

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag, and an output that could not be written.
  CompareOptions options() const;
  // Prints or writes the comparison, and reports to CI systems; returns the exit code. `tool` is the command's name
  // there.
  int print(const Comparison& comparison, const char* tool) const;
};

}  // namespace weir::cli
