// The flags that the commands of `weir history` share.
#pragma once

#include <cstdint>
#include <string>

#include "cli/document_output.h"
#include "report/history/store.h"

namespace weir::cli {

struct HistoryFlags : DocumentOutput {
  std::string database = history::kDefaultFile;

  void add_to(CommandSyntax syntax);
};

// Rejects anything but the number of an entry.
std::int64_t entry_number(const std::string& text);

}  // namespace weir::cli
