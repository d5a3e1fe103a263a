// weir fleet report: not there yet.
#include "base/error.h"
#include "cli/document_output.h"
#include "cli/list.h"

namespace weir::cli {
namespace {

struct FleetReportFlags : DocumentOutput {
  void add_to(CommandSyntax syntax) { DocumentOutput::add_to(syntax); }
};

int execute_fleet_report(const FleetReportFlags&) { reject("not there yet"); }

}  // namespace

CliCommand fleet_report() { return command("report", "", execute_fleet_report); }

}  // namespace weir::cli
