// weir history trend: how a workload developed over time, machine by machine, and where it changed.
#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/flag_values.h"
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct HistoryTrendFlags : HistoryFlags {
  std::string workload, metric, machine, streams;
  std::vector<std::string> params, keys;
  std::string threshold = "2%";
  std::string within = "10";
  bool is_gate = false, is_full = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("workload NAME", workload, "its name; of weir bench the kernel's").required();
    syntax.add("--metric NAME", metric, "latency or throughput (default: latency where there is one)")
        .one_of({"latency", "throughput"});
    syntax.add("--streams N", streams, "only runs with this many streams");
    syntax.add("--param NAME=VALUE", params, "name=value, repeatable: only runs with this parameter");
    syntax.add("--key NAME=VALUE", keys,
               "name=value, repeatable: submit, placement, sync_mode, precision, ranks, backend, ...");
    syntax.add("--machine NAME", machine, kOneMachine);
    syntax.add("--threshold PERCENT", threshold, "the smallest change that matters");
    syntax.add("--gate", is_gate,
               "exit 3 if the last change of a series is for the worse and recent, or its newest run failed");
    syntax.add("--within N", within, "with --gate: how many runs are recent");
    syntax.add("--full", is_full, "all runs, not only the last 20");
    HistoryFlags::add_to(syntax);
    syntax.footer("Exit code: 0 fine, 2 bad input; with --gate 3 something is slower.");
  }
};

history::TrendOptions trend_options_of(const HistoryTrendFlags& flags) {
  history::TrendOptions options;
  options.selection.workload = flags.workload;
  options.selection.metric = flags.metric;
  options.selection.machine = flags.machine;
  if (!flags.streams.empty())
    options.selection.key["streams"] =
        fmt::to_string(whole_number("--streams", flags.streams, 1, INT64_MAX, "not a number of streams", ""));
  for (const std::string& param : flags.params) {
    const auto [name, value] = parse_assignment("--param", param);
    options.selection.key["param." + name] = value;
  }
  for (const std::string& key : flags.keys) {
    const auto [name, value] = parse_assignment("--key", key);
    options.selection.key[name] = value;
  }
  options.changes.threshold = share_of("--threshold", flags.threshold);
  options.is_gate = flags.is_gate;
  const auto fewest = static_cast<std::int64_t>(kMinPerLevel);
  options.within = static_cast<std::size_t>(
      whole_number("--within", flags.within, fewest, 1'000'000, "not a number of runs",
                   fmt::format("Use {} or more: a change is found once {} runs follow it.", fewest, fewest)));
  return options;
}

int execute_history_trend(const HistoryTrendFlags& flags) {
  flags.check_output();
  const history::TrendOptions options = trend_options_of(flags);
  history::Store store(flags.database, history::DatabaseAccess::read);
  const Json document = history::trend_document(store, options);
  flags.print(document, history_report(document, flags.is_full));
  return history::gate_code(document);
}

}  // namespace

CliCommand history_trend() {
  return command("trend", "show one workload over time, and where it changed", execute_history_trend);
}

}  // namespace weir::cli
