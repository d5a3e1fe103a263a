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

CliCommand queues() { return group("queues", "find, map and price hardware queues", {WEIR_QUEUES_COMMANDS}); }
CliCommand probe() { return group("probe", "ask your own program's runtime what it does", {WEIR_PROBE_COMMANDS}); }
CliCommand amd() { return group("amd", "AMD's hardware queues: logs, kernel traces, debugfs", {WEIR_AMD_COMMANDS}); }
CliCommand sched() {
  return group("sched", "let programs share a GPU by priority, weight, deadline or turns", {WEIR_SCHED_COMMANDS});
}
CliCommand fleet() { return group("fleet", "many nodes: which GPU is slow or wrong, and why", {WEIR_FLEET_COMMANDS}); }
CliCommand history() {
  return group("history", "keep results over time, and say when and where they changed", {WEIR_HISTORY_COMMANDS});
}

std::span<const CliCommand> commands() {
  static const std::vector<CliCommand> kCommands = [] {
    const std::pair<const char*, std::vector<CliCommand>> groups[] = {
        {"Your program", {WEIR_PROGRAM_COMMANDS}},    {"This machine", {WEIR_MACHINE_COMMANDS}},
        {"Verdicts", {WEIR_VERDICT_COMMANDS}},        {"Share and operate", {WEIR_SHARING_COMMANDS}},
        {"AMD internals", {WEIR_INTERNALS_COMMANDS}}, {"Set-up", {WEIR_SETUP_COMMANDS}}};
    std::vector<CliCommand> all;
    for (const auto& [heading, commands] : groups)
      for (CliCommand command : commands) {
        command.heading = heading;
        all.push_back(std::move(command));
      }
    return all;
  }();
  return kCommands;
}

std::span<const CliCommand> overlap_commands() {
  static const std::vector<CliCommand> kCommands = {WEIR_OVERLAP_COMMANDS};
  return kCommands;
}

std::span<const CliCommand> record_commands() {
  static const std::vector<CliCommand> kCommands = {WEIR_RECORD_COMMANDS};
  return kCommands;
}

}  // namespace weir::cli
