// Runs a kernel without using its times as results, until they have settled. Knows when that is; docs/bench_method.md
// explains it.
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
  double run_ns = 0;   // time of one run at the end
  std::string reason;  // why it is not steady
};

// At least `options.warmup` runs; then until they are steady, for at most min(2 s, a fifth of the budget).
WarmUp warm_up(package::ReadyKernel& kernel, bool is_host, const MethodOptions& options,
               const Surroundings& surroundings);

// Whether the medians of three windows agree within 2 %, or within their own scatter.
bool is_settled(std::span<const std::vector<double>> windows);

}  // namespace weir::bench
