// The commands by name, for list.cpp and for the files that define them.
#pragma once

#include "cli/command.h"

namespace weir::cli {

CliCommand list_workloads();
CliCommand info();
CliCommand run();
CliCommand sweep();
CliCommand run_priority();
CliCommand compare();
CliCommand analyze();
CliCommand report();
CliCommand profile();
CliCommand channel();
CliCommand conformance();
CliCommand overlap();
CliCommand watch();
CliCommand bench();
CliCommand preempt();
CliCommand export_results();
CliCommand help();
CliCommand completion();

// Below `weir sched`.
CliCommand sched_start();
CliCommand sched_run();
CliCommand sched_status();
CliCommand sched_top();
CliCommand sched_stop();

// Below `weir queues`.
CliCommand queues_map();
CliCommand queues_cost();
CliCommand queues_convoy();
CliCommand queues_sweep();
CliCommand queues_limits();
CliCommand queues_switch();
CliCommand queues_fairness();

// Below `weir overlap`.
CliCommand overlap_compare();
CliCommand overlap_tune();
std::span<const CliCommand> overlap_commands();

// Below `weir history`.
CliCommand history_add();
CliCommand history_list();
CliCommand history_show();
CliCommand history_trend();
CliCommand history_remove();
CliCommand history_export();

// Below `weir amd`.
CliCommand amd_capture();
CliCommand amd_log();
CliCommand amd_compare();
CliCommand amd_hqd();
CliCommand amd_ftrace();
CliCommand amd_join();

}  // namespace weir::cli
