// Runs that nobody times for a result, until their times have settled. Knows when that is; docs/bench_method.md says
// it in words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lab/kernels/method.h"
#include "lab/kernels/surroundings.h"

namespace weir::bench {

struct WarmUp {
  std::uint64_t runs = 0;
  bool is_steady = false;
  double run_ns = 0;   // of one run, as it was in the end
  std::string reason;  // why it is not steady
};

// At least `options.warmup` runs; then until they are steady, for min(2 s, a fifth of the budget) at most.
WarmUp warm_up(package::ReadyKernel& kernel, bool is_host, const MethodOptions& options,
               const Surroundings& surroundings);

// Whether the medians of three windows agree: to 2 %, or to what their own scatter makes likely.
bool is_settled(std::span<const std::vector<double>> windows);

}  // namespace weir::bench
