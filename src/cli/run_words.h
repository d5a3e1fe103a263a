// `weir run` as words for a child process: the flags that decide what is measured, without those about output.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/run_flags.h"

namespace weir::cli {

// Empty values are left out: the child takes its default.
struct RunWords {
  WorkloadFlags workload;
  std::string device, streams, scale, precision, iterations, warmup, submit, placement, seed, compute_units;
  std::vector<std::pair<std::string, std::string>> params;
  std::vector<std::string> sim;
  bool skips_check = false;

  // Always without the traced pass.
  std::vector<std::string> words() const;
};

}  // namespace weir::cli
