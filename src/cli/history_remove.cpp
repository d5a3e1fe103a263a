// weir history remove: removes an entry and its points.
#include <fmt/format.h>

#include "base/console.h"
#include "base/error.h"
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"

namespace weir::cli {
namespace {

struct HistoryRemoveFlags {
  std::string entry;
  std::string database = history::kDefaultFile;
  bool is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("entry N", entry, "its number, as `weir history list` shows it").required();
    syntax.add("--db PATH", database, "the history's file (SQLite)");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  }
};

int execute_history_remove(const HistoryRemoveFlags& flags) {
  const std::int64_t entry = entry_number(flags.entry);
  // Opening for reading rejects a missing file; opening for writing would create it.
  history::Store(flags.database, history::DatabaseAccess::read);
  history::Store store(flags.database, history::DatabaseAccess::write);
  if (!store.remove(entry))
    reject(fmt::format("{}: has no entry {}", flags.database, entry), "`weir history list` shows them.");
  if (!flags.is_quiet) print_out("Entry {} was removed from {}.\n", entry, flags.database);
  return 0;
}

}  // namespace

CliCommand history_remove() { return command("remove", "take an entry out of the history", execute_history_remove); }

}  // namespace weir::cli
