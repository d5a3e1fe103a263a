// What tests of workloads ask of their steps.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "step/workload/workload.h"

namespace weir {

inline Step build(const Workload& workload, int streams,
                  const std::vector<std::pair<std::string, std::string>>& assignments = {}) {
  return workload.build(Params(workload.params, Scale::tiny, assignments), streams);
}

inline bool is_predecessor(const Step& step, CommandId before, CommandId id) {
  return std::ranges::binary_search(step.predecessors(id), before);
}

}  // namespace weir
