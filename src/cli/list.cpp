#include "cli/list.h"

#include <vector>

namespace weir::cli {
namespace {

// A group of commands that does nothing by itself.
CliCommand group(const char* name, const char* summary, std::vector<CliCommand> below) {
  return {name, summary, [below = std::move(below)](CommandSyntax syntax) {
            syntax.require_command();
            return [chosen = syntax.add_commands(below)] { return (*chosen)(); };
          }};
}

}  // namespace

std::span<const CliCommand> commands() {
  static const std::vector<CliCommand> kCommands = {
      list_workloads(),
      info(),
      run(),
      sweep(),
      run_priority(),
      compare(),
      profile(),
      analyze(),
      report(),
      group("queues", "find, map and price hardware queues",
            {queues_map(), queues_limits(), queues_switch(), queues_cost(), queues_sweep(), queues_convoy(),
             queues_fairness()}),
      overlap(),
      channel(),
      conformance(),
      group("amd", "AMD's hardware queues: logs, kernel traces, debugfs",
            {amd_capture(), amd_log(), amd_hqd(), amd_ftrace(), amd_join(), amd_compare()}),
      watch(),
      bench(),
      group("sched", "let programs share a GPU by priority, weight, deadline or turns",
            {sched_start(), sched_run(), sched_status(), sched_top(), sched_stop()}),
      preempt(),
      group("history", "keep results over time, and say when and where they changed",
            {history_add(), history_list(), history_show(), history_trend(), history_remove(), history_export()}),
      export_results(),
      help(),
      completion(),
  };
  return kCommands;
}

std::span<const CliCommand> overlap_commands() {
  static const std::vector<CliCommand> kCommands = {overlap_compare(), overlap_tune()};
  return kCommands;
}

}  // namespace weir::cli
