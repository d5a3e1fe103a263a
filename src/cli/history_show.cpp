// weir history show: the points of one entry.
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct Flags : HistoryFlags {
  std::string entry;
};

int execute(const Flags& flags) {
  flags.check_output();
  const std::int64_t entry = entry_number(flags.entry);
  history::Store store(flags.database, history::Access::read);
  const Json document = history::show_document(store, entry);
  flags.tell(document, history_report(document));
  return 0;
}

}  // namespace

CliCommand history_show() {
  return {"show", "show the points of one entry", [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            syntax.add("entry", flags->entry, "its number, as `weir history list` shows it").required();
            flags->add_to(syntax);
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
