// The flags for output to the CI system that runs a comparison: --github and --junit. Reads GitHub's variables; knows
// no comparison.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "report/figures/judgement.h"

namespace weir::cli {

struct CiFlags {
  bool is_github = false;
  std::string junit;

  void add_to(CommandSyntax syntax);
  // Rejects a file that could not be written, before any work is done, and annotations within a document for programs:
  // `prints_json` means that one goes to standard output.
  void check(bool is_forced, bool prints_json) const;
  // Prints annotations, appends to the step's summary and outputs, and writes the JUnit file. `markdown` makes the
  // report in at most `most` bytes. A summary that cannot be appended to is reported on stderr and does not change the
  // verdict.
  void report(const Judged& judged, const std::function<std::string(std::size_t most)>& markdown, bool is_forced) const;
};

}  // namespace weir::cli
