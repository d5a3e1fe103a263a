// A step prepared for display: what runs on which stream, and where a stream really waits for another.
#pragma once

#include <string>
#include <vector>

#include "run/runner.h"

namespace weir {

struct StepView {
  // An event between two streams. Carried: from the previous iteration, and only if iterations are pipelined.
  struct Wait {
    CommandId before = 0, after = 0;
    bool is_carried = false;
  };

  std::string workload, unit, scale, precision;
  std::vector<std::string> roles;
  std::vector<std::pair<std::string, std::string>> params;
  int streams = 0;  // as requested; the placement may use fewer
  Placement placement;
  std::vector<Wait> waits;
  Step step;
};

StepView view_of(const RunRequest& request, BuiltRun built);

}  // namespace weir
