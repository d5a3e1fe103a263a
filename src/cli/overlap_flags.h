// The flags of `weir overlap` and `weir overlap tune` that say what to run.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/process_flags.h"
#include "lab/overlap/overlap_config.h"

namespace weir::cli {

struct OverlapFlags {
  std::string file;
  std::vector<std::string> assignments;
  std::string ranks, device, hang_timeout;
  VariableFlags variables;
  bool skips_variables = false;  // the config's too

  void add_to(CommandSyntax syntax);
  // The file, with the changes from the flags. Rejects bad values, naming file and line, or the flag.
  OverlapConfig load() const;
  // `weir overlap` as arguments for a child process, with these assignments in addition, on this many ranks. Without
  // variables where this command was given some: the child's environment has them.
  std::vector<std::string> words(const std::vector<std::string>& more, int count) const;
  // The number of ranks to use. Rejects a config that needs another number than this job has.
  int ranks_of(const OverlapConfig& config) const;

 private:
  OverlapConfig read(int expected_ranks) const;
};

}  // namespace weir::cli
