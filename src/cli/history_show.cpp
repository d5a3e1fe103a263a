// weir history show: the points of one entry.
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct HistoryShowFlags : HistoryFlags {
  std::string entry;

  void add_to(CommandSyntax syntax) {
    syntax.add("entry N", entry, "its number, as `weir history list` shows it").required();
    HistoryFlags::add_to(syntax);
  }
};

int execute_history_show(const HistoryShowFlags& flags) {
  flags.check_output();
  const std::int64_t entry = entry_number(flags.entry);
  history::Store store(flags.database, history::DatabaseAccess::read);
  const Json document = history::show_document(store, entry);
  flags.print(document, history_report(document));
  return 0;
}

}  // namespace

CliCommand history_show() { return command("show", "show the points of one entry", execute_history_show); }

}  // namespace weir::cli
