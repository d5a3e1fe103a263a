#include "cli/list.h"

#include <array>
#include <vector>

namespace weir::cli {

std::span<const CliCommand> commands() {
  static const std::array kCommands = {
      list_workloads(), info(),    run(),     sweep(),          run_priority(), compare(),    profile(), analyze(),
      report(),         queues(),  overlap(), channel(),        conformance(),  amd(),        watch(),   bench(),
      sched(),          preempt(), history(), export_results(), help(),         completion(),
  };
  return kCommands;
}

std::span<const CliCommand> queues_commands() {
  static const std::vector<CliCommand> kCommands = {
      queues_map(), queues_limits(), queues_switch(), queues_cost(), queues_sweep(), queues_convoy(), queues_fairness(),
  };
  return kCommands;
}

std::span<const CliCommand> overlap_commands() {
  static const std::array kCommands = {overlap_compare(), overlap_tune()};
  return kCommands;
}

std::span<const CliCommand> sched_commands() {
  static const std::vector<CliCommand> kCommands = {
      sched_start(), sched_run(), sched_status(), sched_top(), sched_stop(),
  };
  return kCommands;
}

std::span<const CliCommand> history_commands() {
  static const std::vector<CliCommand> kCommands = {
      history_add(), history_list(), history_show(), history_trend(), history_remove(), history_export(),
  };
  return kCommands;
}

std::span<const CliCommand> amd_commands() {
  static const std::vector<CliCommand> kCommands = {
      amd_capture(), amd_log(), amd_hqd(), amd_ftrace(), amd_join(), amd_compare(),
  };
  return kCommands;
}

}  // namespace weir::cli
