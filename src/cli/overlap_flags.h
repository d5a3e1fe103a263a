// The flags by which `weir overlap` and `weir overlap tune` are told what to run.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "lab/overlap/overlap_config.h"

namespace weir::cli {

struct OverlapFlags {
  std::string file;
  std::vector<std::string> assignments;
  std::string ranks, device, hang_timeout;

  void add_to(CommandSyntax syntax);
  // The file, with what the flags change. Rejects by file and line, or by flag.
  OverlapConfig load() const;
  // How many ranks it is to have. Rejects a config that wants others than this job has.
  int ranks_of(const OverlapConfig& config) const;
};

}  // namespace weir::cli
