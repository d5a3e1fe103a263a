// weir history list: what was added, and when.
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct HistoryListFlags : HistoryFlags {
  history::EntryFilter filter;

  void add_to(CommandSyntax syntax) {
    syntax.add("--tag NAME", filter.tag, "only entries with this tag");
    syntax.add("--workload NAME", filter.workload, "only entries with this workload");
    syntax.add("--machine NAME", filter.machine, kOneMachine);
    HistoryFlags::add_to(syntax);
  }
};

int execute_history_list(const HistoryListFlags& flags) {
  flags.check_output();
  history::Store store(flags.database, history::DatabaseAccess::read);
  const Json document = history::list_document(store, flags.filter);
  flags.print(document, history_report(document));
  return 0;
}

}  // namespace

CliCommand history_list() { return command("list", "show the entries of the history", execute_history_list); }

}  // namespace weir::cli
