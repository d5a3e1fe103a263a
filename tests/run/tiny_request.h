// Runs that are over at once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/runner.h"
#include "step/workload/workload.h"

namespace weir {

inline RunRequest tiny(const std::string& workload, int streams,
                       const std::vector<std::pair<std::string, std::string>>& params = {}, std::uint64_t seed = 1) {
  RunRequest request;
  request.workload = workload;
  request.streams = streams;
  request.iterations = 2;
  request.warmup = 1;
  request.scale = Scale::tiny;
  request.params = params;
  request.seed = seed;
  request.traces = false;
  return request;
}

// With the streams that the workload recommends.
inline RunRequest tiny(const std::string& workload) {
  return tiny(workload, workload_named(workload).streams.recommended);
}

}  // namespace weir
