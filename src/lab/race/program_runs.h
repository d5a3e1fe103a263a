// One run of the user's program with a plan for the library in it: started in a group of its own, ended at a limit, and
// what it put out. Does not know what the run is for.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "lab/race/log.h"
#include "lab/race/outputs.h"
#include "lab/race/run_plan.h"

namespace weir::race {

struct ProgramRun {
  ProcessEnd end;
  std::int64_t duration_ns = 0;
  Outputs outputs;
  bool has_commands = false;       // a process of the program submitted one with the library in it
  std::vector<std::string> notes;  // of the library
  std::optional<Log> log;          // where the plan observes
  std::map<CommandName, std::vector<std::string>> stacks;
  std::string errors;  // what is left of standard error, for messages
};

struct ProgramRequest {
  std::vector<std::string> command;
  Variables variables;  // that bring the library into it
  OutputRules rules;
};

// Throws StartError where the program cannot be executed, and Interrupted where `stop` is set. `limit_s`: longer runs
// are ended. Call from a thread that outlives it.
ProgramRun run_program(const ProgramRequest& request, const RunPlan& plan, double limit_s,
                       const std::atomic<bool>& stop);

// The file of stacks: "command T.S", frames, an empty line, and so on.
std::map<CommandName, std::vector<std::string>> stacks_in(std::string_view text);

}  // namespace weir::race
