// The flags for writing a command's results for other programs as well: --openmetrics and --csv. `weir export` does the
// same with files afterwards.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "cli/command.h"

namespace weir::cli {

struct ExportFlags {
  std::string openmetrics, csv;

  void add_to(CommandSyntax syntax);
  // Rejects files that could not be written, before any work is done.
  void check(bool is_forced) const;
  bool is_asked() const { return !openmetrics.empty() || !csv.empty(); }
  // Does nothing where neither flag is given.
  void write(std::span<const Json> documents, bool is_forced) const;
};

}  // namespace weir::cli
