// --processes, --until and --budget: how many processes a measurement is repeated in; --env: which variables differ
// between them. Shared by the commands that repeat themselves as a whole.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "run/processes.h"
#include "run/variable_axis.h"

namespace weir::cli {

struct ProcessFlags {
  std::string processes = "1", until, budget;

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag, and several processes inside a job of ranks, which they would have to start.
  ProcessCount count() const;
};

struct VariableFlags {
  std::vector<std::string> texts;

  void add_to(CommandSyntax syntax);
  // Rejects bad names and values, and any inside a job of ranks, whose processes have their variables already.
  std::vector<VariableAxis> axes() const;
};

// "process 3 of 5 to 20", for a progress line.
std::string process_words(const ProcessCount& count, std::size_t round);

}  // namespace weir::cli
