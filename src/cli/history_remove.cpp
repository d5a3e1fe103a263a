// weir history remove: takes an entry out again, with its points.
#include <fmt/format.h>

#include "base/error.h"
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"

namespace weir::cli {
namespace {

struct Flags {
  std::string entry;
  std::string database = history::kDefaultFile;
  bool is_quiet = false;
};

int execute(const Flags& flags) {
  const std::int64_t entry = entry_number(flags.entry);
  // Reading rejects a file that is not there, which writing would make.
  history::Store(flags.database, history::Access::read);
  history::Store store(flags.database, history::Access::write);
  if (!store.remove(entry))
    reject(fmt::format("{}: has no entry {}", flags.database, entry), "`weir history list` shows them.");
  if (!flags.is_quiet) fmt::print("Entry {} was removed from {}.\n", entry, flags.database);
  return 0;
}

}  // namespace

CliCommand history_remove() {
  return {"remove", "take an entry out of the history", [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            syntax.add("entry", flags->entry, "its number, as `weir history list` shows it").required();
            syntax.add("--db", flags->database, "the history's file (SQLite)").takes("FILE");
            syntax.add("--quiet,-q", flags->is_quiet, "print nothing but errors");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
