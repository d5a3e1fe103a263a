// weir history export: all points as CSV, for spreadsheets.
#include <fmt/format.h>

#include "base/console.h"
#include "base/json.h"
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"

namespace weir::cli {
namespace {

struct HistoryExportFlags {
  std::string database = history::kDefaultFile;
  std::string output;
  history::PointFilter filter;
  bool is_forced = false, is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("--workload NAME", filter.workload, "only this workload");
    syntax.add("--machine NAME", filter.machine, kOneMachine);
    syntax.add("--db PATH", database, kHistoryPlace);
    syntax.add("--output,-o PATH", output, "write to this file");
    syntax.add("--force,-f", is_forced, "replace a file that exists");
    syntax.add("--quiet,-q", is_quiet, "print no names of files");
  }
};

int execute_history_export(const HistoryExportFlags& flags) {
  if (!flags.output.empty() && flags.output != "-") check_writable(flags.output, flags.is_forced);
  history::Store store(flags.database, history::DatabaseAccess::read);
  const std::string csv = history::points_csv(store, flags.filter);
  if (flags.output.empty() || flags.output == "-") {
    write_out(csv);
    return 0;
  }
  write_file(flags.output, csv, flags.is_forced);
  if (!flags.is_quiet) print_out("Written to {}\n", flags.output);
  return 0;
}

}  // namespace

CliCommand history_export() { return command("export", "write all points as CSV", execute_history_export); }

}  // namespace weir::cli
