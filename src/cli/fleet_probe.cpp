// weir fleet probe: not there yet.
#include "base/error.h"
#include "cli/document_output.h"
#include "cli/list.h"

namespace weir::cli {
namespace {

struct FleetProbeFlags : DocumentOutput {
  void add_to(CommandSyntax syntax) { DocumentOutput::add_to(syntax); }
};

int execute_fleet_probe(const FleetProbeFlags&) { reject("not there yet"); }

}  // namespace

CliCommand fleet_probe() { return command("probe", "", execute_fleet_probe); }

}  // namespace weir::cli
