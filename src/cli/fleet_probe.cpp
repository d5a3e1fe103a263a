// weir fleet probe: examines the devices of this node, and judges them against peers; in a job of several nodes, all
// of them against each other.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "base/stop.h"
#include "base/text_gate.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/fleet_job.h"
#include "cli/fleet_nodes.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "lab/fleet/figures.h"
#include "lab/fleet/judge/judge.h"
#include "lab/fleet/probe/probe.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

constexpr int kUnfit = 5;
constexpr std::int64_t kSecondNs = 1'000'000'000;

struct FleetProbeFlags {
  DocumentFile document;
  std::vector<std::string> devices, peers, slow_down;
  std::string budget = "45s", node;
  bool prints_drain_command = false, is_alone = false, each_rank = false, is_forced = false, is_quiet = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("--device NAME", devices,
               "cuda:0, hip:0, cpu, sim:h200 ..., with commas, repeatable (default: all GPUs of the node, else cpu)");
    syntax.add("--peers PATH", peers, fmt::format("this node is judged against the nodes of these: {}", kNodePaths))
        .takes_several();
    syntax.add("--budget DURATION", budget,
               "no further repetition begins after this long; the rest takes some seconds");
    syntax.add("--node NAME", node,
               "the name of this node, in containers whose host name is another (default: the host's)");
    syntax.add("--alone", is_alone, "in a job of several processes: every node for itself, without MPI");
    syntax.add("--drain-command", prints_drain_command,
               "print, and do not run, the command by which Slurm takes an unfit node out of service");
    document.add_to(syntax,
                    "write the document (weir.fleet_probe/1) to this file (-: standard output), or to a folder as "
                    "NODE.json; of a job of several nodes a folder, with fleet.json beside the nodes' documents");
    syntax.add("--force,-f", is_forced, "replace files that exist");
    syntax.add("--quiet,-q", is_quiet, "print only the reason why a node is unfit, and the command to drain it");
    syntax.add("--each-rank", each_rank, "every process of a job is a node of its own").hidden();
    syntax.add("--slow-down FIGURE=PERCENT", slow_down, "for tests: the host waits so much longer in this figure")
        .hidden();
    syntax.footer(
        "Exit code: 0 fit, 5 unfit (the reason on one line of stderr), 1 nothing could be\n"
        "examined, 2 bad input, 130 interrupted.");
  }

  bool has_folder() const { return !document.path().empty() && !document.path().ends_with(".json"); }
};

std::vector<std::string> all_devices_of_node() {
  for (const DeviceType& type : device_types()) {
    const DeviceType::Found found = type.find();
    if (found.gpus == 0 || !found.are_numbered) continue;
    return {found.names.begin(), found.names.begin() + static_cast<std::ptrdiff_t>(found.gpus)};
  }
  return {"cpu"};
}

// A kind of device that does not exist is a mistake; a number that does not exist may be a GPU that is lost.
std::vector<std::string> named_devices(const std::vector<std::string>& typed) {
  std::vector<std::string> names;
  for (const std::string& list : typed)
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      names.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  std::vector<std::string> kinds;
  for (const DeviceType& type : device_types()) kinds.push_back(type.name);
  for (const std::string& name : names) {
    const std::string kind = name.substr(0, name.find(':'));
    if (kind != "auto" && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      reject(fmt::format("--device {}: there is no such device", for_line(name)), suggestion(kind, kinds));
  }
  if (names.empty() || names == std::vector<std::string>{"auto"}) return all_devices_of_node();
  return names;
}

std::map<std::string, double> slowed_figures(const std::vector<std::string>& typed) {
  std::map<std::string, double> slowed;
  for (const std::string& each : typed) {
    const std::size_t equals = each.find('=');
    const std::string figure = each.substr(0, equals);
    const fleet::FigureKind* const kind = fleet::find_figure(figure);
    if (equals == std::string::npos || kind == nullptr || kind->goal == fleet::Goal::none)
      reject(fmt::format("--slow-down {}: not FIGURE=PERCENT of a figure that is measured", for_line(each)));
    slowed[figure] = share_of("--slow-down", each.substr(equals + 1), 100);
  }
  return slowed;
}

// What the flags say, checked before anything is measured.
struct FleetProbePlan {
  explicit FleetProbePlan(const FleetProbeFlags& flags) : devices(named_devices(flags.devices)) {
    options.devices = devices;
    options.slow_down = slowed_figures(flags.slow_down);
    options.budget_ns = duration_of("--budget", flags.budget, 1, 3600 * kSecondNs);
    // With the default, the whole command ends within a minute.
    options.patience_ns = std::max(options.budget_ns + 13 * kSecondNs, 58 * kSecondNs);
    peers = read_nodes(flags.peers);
    if (flags.prints_drain_command && flags.document.prints_json())
      reject("--drain-command: standard output holds the document", "Leave out --json, or --drain-command.");
  }
  std::vector<std::string> devices;
  std::vector<fleet::NodeReport> peers;
  fleet::ProbeOptions options;
};

struct ProbedNode {
  fleet::NodeReport report;
  bool is_interrupted = false, is_stuck = false;
};

ProbedNode probe_node(const FleetProbeFlags& flags, const FleetProbePlan& plan) {
  ProbedNode node;
  fleet::NodeReport& report = node.report;
  const std::int64_t begun_ns = now_ns();
  RunContext context = run_context();
  report.name = flags.node.empty() ? node_name() : flags.node;
  if (flags.each_rank && job_ranks().count > 1) report.name += fmt::format("-{}", job_ranks().rank);
  report.created = wall_time();
  report.command_line = std::move(context.command_line);
  report.environment = std::move(context.environment);
  report.place = node_place();
  describe_node(report);
  ProgressLine line(flags.is_quiet || !is_first_rank());
  fleet::ProbeOptions options = plan.options;
  options.open = [](const std::string& name, Communicator* communicator) {
    return open_device(name, device_options("", {}, communicator));
  };
  options.stop = &catch_interrupts();
  options.progress = [&](std::string_view stage, int done, int total) { line.show(stage, done, total); };
  fleet::ProbedDevices probed = probe_devices(options);
  line.clear();
  report.devices = std::move(probed.devices);
  const auto has_values = [](const fleet::NodeDevice& device) {
    return std::any_of(device.figures.begin(), device.figures.end(),
                       [](const fleet::Figure& figure) { return !figure.samples.empty(); });
  };
  if (std::none_of(report.devices.begin(), report.devices.end(), has_values))
    report.failure = fmt::format("no device could be measured: {}: {}", report.devices[0].name,
                                 report.devices[0].failure.empty() ? "it has no figure" : report.devices[0].failure);
  report.duration_ns = static_cast<double>(now_ns() - begun_ns);
  node.is_interrupted = probed.is_interrupted;
  node.is_stuck = probed.is_stuck;
  return node;
}

// For a shell: nothing inside is special, and a quote ends and begins the quotes again.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : for_line(text)) letter == '\'' ? quoted += "'\\''" : quoted += letter;
  return quoted + "'";
}

std::string drain_command(const fleet::NodeVerdict& verdict) {
  constexpr std::size_t kLongest = 200;
  std::string reason = "weir: " + verdict.reason;
  if (reason.size() > kLongest) reason = reason.substr(0, kLongest - 3) + "...";
  return fmt::format("scontrol update NodeName={} State=DRAIN Reason={}\n", shell_quoted(verdict.name),
                     shell_quoted(reason));
}

// The exit code of the nodes of `judged`.
int finish_verdicts(const FleetProbeFlags& flags, const fleet::FleetReport& judged) {
  int code = 0;
  for (const fleet::NodeVerdict& verdict : judged.verdicts) {
    if (verdict.is_fit) continue;
    code = kUnfit;
    print_err("weir: {} is unfit: {}\n", for_line(verdict.name), for_line(verdict.reason));
    if (flags.prints_drain_command) write_out(drain_command(verdict));
  }
  return code;
}

// A node's name as that of a file: from another machine, so nothing in it may lead elsewhere.
std::string file_of(const std::string& node) {
  std::string name = node;
  for (char& letter : name)
    if (std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.").find(letter) ==
        std::string_view::npos)
      letter = '_';
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name + ".json";
}

void check_outputs_of(const FleetProbeFlags& flags, bool has_ranks) {
  const std::string path = flags.document.path();
  if (path.empty()) return;
  if (!flags.has_folder()) {
    if (has_ranks) reject(fmt::format("--output {}: the nodes of a job have a document each", path), "Name a folder.");
    check_writable(path, flags.is_forced);
    return;
  }
  make_folders(path);
  const std::string file = has_ranks ? "fleet.json" : file_of(flags.node.empty() ? node_name() : flags.node);
  check_writable(std::filesystem::path(path) / file, flags.is_forced);
}

void say_written(const FleetProbeFlags& flags) {
  if (!flags.document.path().empty() && !flags.is_quiet && !flags.document.prints_json())
    print_out("Written to {}\n", flags.document.path());
}

int finish_one(const FleetProbeFlags& flags, const FleetProbePlan& plan, const fleet::NodeReport& node) {
  const Json document = to_json(node);
  if (const std::string path = flags.document.path(); !path.empty())
    write_file(flags.has_folder() ? std::filesystem::path(path) / file_of(node.name) : std::filesystem::path(path),
               to_text(document), flags.is_forced);
  if (flags.document.prints_json()) write_json(to_text(document));
  if (!node.failure.empty()) fail(node.failure, "`weir info` shows which devices there are.");
  const fleet::FleetReport judged = judge({&node, 1}, plan.peers);
  if (!flags.document.prints_json() && !flags.is_quiet) {
    TextReport report = std::get<TextReport>(text_list::fleet_probe(document));
    ReportSection& section = report.section("Verdict");
    for (const fleet::Finding& finding : judged.findings) section.remark(finding.sentence);
    for (const std::string& note : judged.notes) section.remark(note);
    if (judged.findings.empty()) section.remark("Nothing is wrong with this node.");
    if (plan.peers.empty())
      section.remark(
          "There are no peers, so only wrong results, faults and differences within the node were looked for: "
          "--peers FOLDER names documents of other nodes.");
    write_out(report_text(report));
  }
  say_written(flags);
  return finish_verdicts(flags, judged);
}

int finish_fleet(const FleetProbeFlags& flags, const FleetProbePlan& plan,
                 const std::vector<fleet::NodeReport>& nodes) {
  const fleet::FleetReport judged = judge(nodes, plan.peers);
  const Json document = fleet_document(judged, nodes, run_context().command_line);
  if (const std::filesystem::path folder = flags.document.path(); !folder.empty()) {
    for (const fleet::NodeReport& node : nodes)
      write_file(folder / file_of(node.name), to_text(to_json(node)), flags.is_forced);
    write_file(folder / "fleet.json", to_text(document), flags.is_forced);
  }
  if (flags.document.prints_json()) write_json(to_text(document));
  if (!flags.document.prints_json() && !flags.is_quiet)
    write_out(report_text(std::get<TextReport>(text_list::fleet(document))));
  say_written(flags);
  const bool has_failed =
      std::all_of(nodes.begin(), nodes.end(), [](const auto& node) { return !node.failure.empty(); });
  if (has_failed) fail(nodes[0].name + ": " + nodes[0].failure, "`weir info` shows which devices there are.");
  return finish_verdicts(flags, judged);
}

// A thread is inside of a driver that does not answer: nothing may wait for it.
int end_with(int code, bool is_stuck) {
  if (!is_stuck) return code;
  finish_console(code);
  end_at_once(code);
}

int execute_fleet_probe(const FleetProbeFlags& flags) {
  const JobPlace place = job_place(flags.is_alone, flags.each_rank);
  if (place.is_idle) return 0;
  const FleetProbePlan plan(flags);
  if (!place.has_ranks) {
    check_outputs_of(flags, false);
    const ProbedNode node = probe_node(flags, plan);
    if (node.is_interrupted) return end_with(kExitInterrupted, node.is_stuck);
    return end_with(finish_one(flags, plan, node.report), node.is_stuck);
  }
  Communicator& ranks = *join_ranks();
  if (is_first_rank()) check_outputs_of(flags, true);
  watch_ranks();
  std::optional<fleet::NodeReport> own;
  bool is_stuck = false, is_interrupted = false;
  if (is_working_rank(ranks, flags.each_rank)) {
    ProbedNode node = probe_node(flags, plan);
    own = std::move(node.report);
    is_stuck = node.is_stuck;
    is_interrupted = node.is_interrupted;
  }
  if (ranks.any(is_interrupted)) {
    leave_ranks();
    return end_with(kExitInterrupted, is_stuck);
  }
  const std::vector<fleet::NodeReport> nodes = gather_nodes(ranks, std::move(own));
  leave_ranks();
  return end_with(nodes.empty() ? 0 : finish_fleet(flags, plan, nodes), is_stuck);
}

}  // namespace

CliCommand fleet_probe() {
  return command("probe", "measure and check all GPUs of this node, or of all nodes of a job", execute_fleet_probe);
}

}  // namespace weir::cli
