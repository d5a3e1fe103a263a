// The commands, and those below one of them, in the order of the help: a file each beside this one, and its name here.
#pragma once

#include "cli/command.h"

#define WEIR_PROGRAM_COMMANDS profile(), record(), analyze(), advise(), watch(), race(), probe()
#define WEIR_MACHINE_COMMANDS run(), sweep(), queues(), preempt(), overlap(), channel(), bench()
#define WEIR_VERDICT_COMMANDS compare(), try_settings(), history(), report(), export_results()
#define WEIR_SHARING_COMMANDS sched(), fleet()
#define WEIR_INTERNALS_COMMANDS amd()
#define WEIR_SETUP_COMMANDS info(), list_workloads(), conformance(), calibrate(), help(), completion()
#define WEIR_PROBE_COMMANDS probe_priority()
#define WEIR_QUEUES_COMMANDS \
  queues_map(), queues_limits(), queues_switch(), queues_cost(), queues_sweep(), queues_convoy(), queues_fairness()
#define WEIR_AMD_COMMANDS amd_capture(), amd_log(), amd_hqd(), amd_ftrace(), amd_join(), amd_roadmap(), amd_queues()
#define WEIR_SCHED_COMMANDS sched_start(), sched_run(), sched_status(), sched_top(), sched_stop()
#define WEIR_FLEET_COMMANDS fleet_probe(), fleet_report()
#define WEIR_HISTORY_COMMANDS \
  history_add(), history_list(), history_show(), history_trend(), history_remove(), history_export()
#define WEIR_OVERLAP_COMMANDS overlap_tune(), overlap_sweep()
#define WEIR_RECORD_COMMANDS record_dump(), record_on(), record_off(), record_list(), record_hang()

namespace weir::cli {

CliCommand WEIR_PROGRAM_COMMANDS;
CliCommand WEIR_MACHINE_COMMANDS;
CliCommand WEIR_VERDICT_COMMANDS;
CliCommand WEIR_SHARING_COMMANDS;
CliCommand WEIR_INTERNALS_COMMANDS;
CliCommand WEIR_SETUP_COMMANDS;
CliCommand WEIR_PROBE_COMMANDS;
CliCommand WEIR_QUEUES_COMMANDS;
CliCommand WEIR_AMD_COMMANDS;
CliCommand WEIR_SCHED_COMMANDS;
CliCommand WEIR_FLEET_COMMANDS;
CliCommand WEIR_HISTORY_COMMANDS;
CliCommand WEIR_OVERLAP_COMMANDS;
CliCommand WEIR_RECORD_COMMANDS;

std::span<const CliCommand> overlap_commands();
std::span<const CliCommand> record_commands();

}  // namespace weir::cli
