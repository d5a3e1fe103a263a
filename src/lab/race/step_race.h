// Whether a wait that is taken away from a step is found: the truth that the rest of this folder is measured against. A
// plan without the wait gives suspects, and a run in which the first of a pair is held up shows them. Knows steps and
// devices; knows no program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "lab/race/step_log.h"
#include "run/runner.h"

namespace weir::race {

struct StepRaceOptions {
  std::uint32_t missing = 1;          // waits to take away, one at a time, chosen by seed
  std::optional<std::uint32_t> wait;  // this one instead: a number in StepPlan::waits
  std::uint64_t seed = 1;
  bool is_pipelined = false;  // two iterations without a wait of the host between them
  bool shows = true;          // by runs; else by the plan alone
  // cpu: how long the first command of a pair may be held up until the second has ended; on an idle machine that takes
  // no longer than the second.
  std::int64_t patience_ns = 5'000'000'000;
};

struct StepRacePair {
  StepCommand first, second;
  std::string first_name, second_name;  // kernels, or what else they are
  StreamId first_stream = 0, second_stream = 0;
  BufferId buffer = 0;
  std::string buffer_name;
  std::uint64_t offset_bytes = 0, size_bytes = 0;  // that both touch
  bool is_ordered_with_wait = false;               // by the plan that has the wait
  std::optional<bool> is_overtaken;                // in a run without the wait; nothing: there was none
  std::optional<bool> is_shown;                    // a run without the wait was wrong; nothing: there was none
  std::optional<bool> is_right_with_wait;          // a run with the wait, and the same delay, was right
  std::string shown;                               // what the run showed, or why there is no answer
};

struct MissingWait {
  std::uint32_t number = 0;         // in StepPlan::waits
  StepCommand waiter;               // whose stream no longer waits,
  CommandId awaited = 0;            // for this command
  bool is_found = false;            // some pair is ordered by this wait alone
  std::vector<StepRacePair> pairs;  // best first
};

struct StepRace {
  std::string device;
  int streams = 0;
  bool is_pipelined = false;
  std::uint32_t waits = 0;         // that the plan has
  std::uint64_t intact_pairs = 0;  // suspects of the step as it is; each is a false alarm
  std::vector<MissingWait> missing;
  std::uint32_t found = 0;
  std::optional<std::uint32_t> shown;  // of the missing waits; nothing: no runs
};

// Rejects devices other than cpu and sim, and more missing waits than there are.
StepRace race_step(Device& device, const Step& step, const Placement& placement, const StepRaceOptions& options);
// Opens the device with a hardware queue for each stream: in a queue that streams share nothing can be overtaken.
StepRace race_step(const std::string& device, const RunRequest& request, const StepRaceOptions& options);

}  // namespace weir::race
