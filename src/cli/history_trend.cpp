// weir history trend: how one workload went over time, machine by machine, and where it changed.
#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/history_flags.h"
#include "cli/list.h"
#include "report/history/document.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

struct Flags : HistoryFlags {
  std::string workload, metric, machine, streams;
  std::vector<std::string> params, keys;
  std::string threshold = "2%";
  std::string within = "10";
  bool is_gate = false, is_full = false;
};

history::TrendOptions options_of(const Flags& flags) {
  history::TrendOptions options;
  options.selection.workload = flags.workload;
  options.selection.metric = flags.metric;
  options.selection.machine = flags.machine;
  if (!flags.streams.empty()) {
    const auto count = parse_integer(flags.streams);
    if (!count || *count < 1) reject(fmt::format("--streams {}: not a number of streams", flags.streams));
    options.selection.key["streams"] = fmt::to_string(*count);
  }
  for (const std::string& param : flags.params) {
    const auto [name, value] = parse_assignment("--param", param);
    options.selection.key["param." + name] = value;
  }
  for (const std::string& key : flags.keys) {
    const auto [name, value] = parse_assignment("--key", key);
    options.selection.key[name] = value;
  }
  options.changes.threshold = parse_fraction(flags.threshold);
  if (options.changes.threshold <= 0 || options.changes.threshold > 1)
    reject(fmt::format("--threshold {}: out of range", flags.threshold), "Choose more than 0 % and at most 100 %.");
  options.is_gate = flags.is_gate;
  const auto within = parse_integer(flags.within);
  const auto fewest = static_cast<std::int64_t>(kFewestPerLevel);
  if (!within || *within < fewest || *within > 1'000'000)
    reject(fmt::format("--within {}: not a number of runs", flags.within),
           fmt::format("Use {} or more: a change is seen once {} runs lie behind it.", fewest, fewest));
  options.within = static_cast<std::size_t>(*within);
  return options;
}

int execute(const Flags& flags) {
  flags.check_output();
  const history::TrendOptions options = options_of(flags);
  history::Store store(flags.database, history::Access::read);
  const Json document = history::trend_document(store, options);
  flags.tell(document, history_report(document, flags.is_full));
  return history::gate_code(document);
}

}  // namespace

CliCommand history_trend() {
  return {"trend", "show one workload over time, and where it changed",
          [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            syntax.add("workload", flags->workload, "its name; of weir bench the kernel's").required();
            syntax.add("--metric", flags->metric, "latency or throughput (default: latency where there is one)")
                .one_of({"latency", "throughput"});
            syntax.add("--streams", flags->streams, "only runs with this many streams");
            syntax.add("--param", flags->params, "name=value, repeatable: only runs with this parameter");
            syntax.add("--key", flags->keys,
                       "name=value, repeatable: submit, placement, sync_mode, precision, ranks, backend, ...");
            syntax.add("--machine", flags->machine, "only this machine: its id, or how it begins");
            syntax.add("--threshold", flags->threshold, "the smallest change that matters");
            syntax.add("--gate", flags->is_gate,
                       "exit 3 if the last change of a series is for the worse and recent, or its newest run failed");
            syntax.add("--within", flags->within, "with --gate: how many runs are recent");
            syntax.add("--full", flags->is_full, "all runs, not only the last 20");
            flags->add_to(syntax);
            syntax.footer("Exit code: 0 fine, 2 bad input; with --gate 3 something is slower.");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
