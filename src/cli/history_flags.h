// The flags that the commands of `weir history` share.
#pragma once

#include <cstdint>
#include <string>

#include "cli/document_output.h"
#include "report/history/store.h"

namespace weir::cli {

// What --db takes.
inline constexpr const char* kHistoryPlace =
    "the history: a file (SQLite), or a PostgreSQL database as postgresql://USER@HOST/NAME";
inline constexpr const char* kOneMachine = "only this machine: its id, the beginning of it, or a GPU's serial number";

struct HistoryFlags : DocumentOutput {
  std::string database = history::kDefaultFile;

  void add_to(CommandSyntax syntax);
};

// Rejects anything but the number of an entry.
std::int64_t entry_number(const std::string& text);

}  // namespace weir::cli
