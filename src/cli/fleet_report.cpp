// weir fleet report: reads what nodes said of themselves, and says who is slow or wrong among them, as text and as a
// page. Measures nothing.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/private_folder.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/fleet_nodes.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/report_page.h"
#include "lab/fleet/judge/judge.h"
#include "report/history/store.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

constexpr double kLargestSignificance = 0.5;

struct FleetReportFlags : DocumentOutput {
  std::vector<std::string> paths, peers;
  std::string significance = "1%", threshold = "3%", since, page;

  void add_to(CommandSyntax syntax) {
    syntax.add("path PATH", paths, kNodePaths).required().takes_several();
    syntax.add("--peers PATH", peers, "more nodes to compare with, which are not judged: as PATH");
    syntax.add("--since DATE", since, "of histories only probes since then: 2026-11-19, or its beginning");
    syntax.add("--threshold PERCENT", threshold, "smaller effects do not matter");
    syntax.add("--significance PERCENT", significance, "chance that any device of a healthy fleet is named");
    DocumentOutput::add_to(syntax);
    syntax.add("--html PATH", page, "also write the page: the map of all devices, and what was found");
    syntax.footer("Exit code: 0 all nodes are fit, 2 bad input, 5 a node is unfit.");
  }
};

// The devices that a finding names, as far as a history knows them: their series go onto the page.
std::vector<std::string> machines_of(const fleet::FleetReport& report, const std::string& history) {
  constexpr std::size_t kMost = 24;
  std::set<std::string> serials;
  for (const fleet::Finding& finding : report.findings)
    if (!finding.serial.empty() && serials.size() < kMost) serials.insert(finding.serial);
  std::vector<std::string> ids;
  history::Store store(history, history::DatabaseAccess::read);
  for (const history::Machine& machine : store.machines())
    for (const auto& [name, value] : machine.facts)
      if (name.ends_with("serial") && serials.contains(value)) ids.push_back(machine.id);
  return ids;
}

// "probes, fleet.db and 2 more"
std::string names_of(const std::vector<std::string>& paths) {
  constexpr std::size_t kMost = 3;
  std::string names;
  for (std::size_t i = 0; i < std::min(paths.size(), kMost); ++i)
    names += (i == 0 ? "" : ", ") + (history::is_postgres(paths[i]) ? history::without_password(paths[i]) : paths[i]);
  return paths.size() <= kMost ? names : fmt::format("{} and {} more", names, paths.size() - kMost);
}

// False where it was interrupted.
bool write_page(const FleetReportFlags& flags, const fleet::FleetReport& report, const Json& document) {
  const PrivateFolder folder;
  ReportRequest request;
  request.paths = {(folder.path() / "fleet.json").string()};
  request.title = "Fleet";
  write_file(request.paths[0], to_text(document), false);
  for (const std::string& path : flags.paths)
    if (is_history(path) && request.history.empty()) request.machines = machines_of(report, request.history = path);
  if (request.machines.empty()) request.history.clear();
  request.stop = &catch_interrupts();
  request.is_quiet = flags.is_quiet;
  std::optional<MadeReport> made = report_document(request);
  if (!made) return false;
  for (Json& source : made->document["sources"])
    if (source["path"] == request.paths[0]) source["path"] = names_of(flags.paths);
  write_file(flags.page, report_html(made->document), flags.is_forced);
  flags.report_written(flags.page);
  return true;
}

int execute_fleet_report(const FleetReportFlags& flags) {
  constexpr int kExitUnfit = 5;
  flags.check_output();
  if (!flags.page.empty()) {
    if (const std::string reason = why_no_page(); !reason.empty()) reject(reason, "Leave out --html.");
    check_writable(flags.page, flags.is_forced);
  }
  fleet::JudgeOptions options;
  options.threshold = share_of("--threshold", flags.threshold);
  options.significance = share_of("--significance", flags.significance, kLargestSignificance);
  // A history of a million results takes half a second for each of the two questions.
  std::future<std::vector<fleet::Finding>> changes =
      std::async(std::launch::async, [&] { return changes_of(flags.paths, flags.since, options.threshold); });
  const std::vector<fleet::NodeReport> nodes = read_nodes(flags.paths, flags.since);
  const std::vector<fleet::NodeReport> peers = read_nodes(flags.peers, flags.since);
  fleet::FleetReport report = fleet::judge(nodes, peers, options);
  std::set<std::string> names;
  for (const fleet::NodeReport& node : nodes) names.insert(node.name);
  for (fleet::Finding& change : changes.get())
    if (names.contains(change.node)) report.findings.push_back(std::move(change));
  const Json document = fleet_document(report, nodes, run_context().command_line);
  flags.print(document, std::get<TextReport>(text_list::fleet(document)));
  if (!flags.page.empty() && !write_page(flags, report, document)) return kExitInterrupted;
  for (const fleet::NodeVerdict& verdict : report.verdicts)
    if (!verdict.is_fit) return kExitUnfit;
  return 0;
}

}  // namespace

CliCommand fleet_report() {
  return command("report", "which GPUs of many nodes are slow or wrong, and why", execute_fleet_report);
}

}  // namespace weir::cli
