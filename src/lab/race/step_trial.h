// One run of a step that is disturbed on purpose, and whether that made a difference. Knows sessions; judges no log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "lab/race/step_log.h"

namespace weir::race {

// What a run left behind: on cpu the outputs, on sim when each command ran.
struct StepOutcome {
  std::vector<std::uint64_t> digests;  // by buffer; empty on sim
  std::string wrong;                   // what the check of outputs, or the run, said; empty: nothing, or not asked
  Timeline timeline;
};

struct TrialVerdict {
  bool is_overtaken = false;  // the second started before the first had ended
  bool is_wrong = false;      // cpu: outputs are wrong, or others than otherwise; sim, which has none: is_overtaken
  std::string said;           // both, in words
};

class StepTrial {
 public:
  StepTrial(Device& device, const Step& step, const Placement& placement, bool is_pipelined);

  // One run. What the disturbance did to the pair, and whether that mattered.
  TrialVerdict judge(const Disturbance& disturbance, StepCommand first, StepCommand second);
  Disturbance disturbance(StepCommand first, StepCommand second, std::int64_t patience_ns) const;

 private:
  StepOutcome run(const Disturbance& disturbance);
  const StepOutcome& intact();

  Device& device_;
  const Step& step_;
  const Placement& placement_;
  bool is_pipelined_;
  bool is_virtual_;
  std::optional<StepOutcome> intact_;
};

}  // namespace weir::race
