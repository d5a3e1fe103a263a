// weir fleet report: reads what nodes said of themselves, and prints who is slow or wrong among them. Measures nothing.
#include <string>
#include <variant>
#include <vector>

#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/fleet_nodes.h"
#include "cli/list.h"
#include "cli/process.h"
#include "lab/fleet/fleet.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

constexpr double kLargestSignificance = 0.5;

struct FleetReportFlags : DocumentOutput {
  std::vector<std::string> paths, peers;
  std::string significance = "1%", threshold = "3%";

  void add_to(CommandSyntax syntax) {
    syntax.add("path PATH", paths, "what `weir fleet probe -o` wrote: files, and folders of them")
        .required()
        .takes_several();
    syntax.add("--peers PATH", peers, "more nodes to compare with, which are not judged: files and folders");
    syntax.add("--threshold PERCENT", threshold, "smaller effects do not matter");
    syntax.add("--significance PERCENT", significance, "chance that any device of a healthy fleet is named");
    DocumentOutput::add_to(syntax);
    syntax.footer("Exit code: 0 all nodes are fit, 2 bad input, 5 a node is unfit.");
  }
};

int execute_fleet_report(const FleetReportFlags& flags) {
  constexpr int kExitUnfit = 5;
  flags.check_output();
  fleet::JudgeOptions options;
  options.threshold = share_of("--threshold", flags.threshold);
  options.significance = share_of("--significance", flags.significance, kLargestSignificance);
  const std::vector<fleet::NodeReport> nodes = read_nodes(flags.paths), peers = read_nodes(flags.peers);
  const fleet::FleetReport report = fleet::judge(nodes, peers, options);
  const Json document = fleet_document(report, nodes, run_context().command_line);
  flags.print(document, std::get<TextReport>(text_list::fleet(document)));
  for (const fleet::NodeVerdict& verdict : report.verdicts)
    if (!verdict.is_fit) return kExitUnfit;
  return 0;
}

}  // namespace

CliCommand fleet_report() {
  return command("report", "which GPUs of many nodes are slow or wrong, and why", execute_fleet_report);
}

}  // namespace weir::cli
