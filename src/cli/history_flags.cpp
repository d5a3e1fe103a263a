#include "cli/history_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"

namespace weir::cli {

void HistoryFlags::add_to(CommandSyntax syntax) {
  syntax.add("--db PATH", database, kHistoryPlace);
  DocumentOutput::add_to(syntax);
}

std::int64_t entry_number(const std::string& text) {
  const auto value = parse_integer(text);
  if (!value || *value < 1)
    reject(fmt::format("'{}' is not the number of an entry", text), "`weir history list` shows them.");
  return *value;
}

}  // namespace weir::cli
