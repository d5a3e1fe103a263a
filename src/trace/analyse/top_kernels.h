// Where the device's time went by name. Reads the timeline of one device; names are numbers of the whole timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/timeline.h"

namespace weir {

struct KernelUse {
  std::uint32_t name = kNoName;
  SpanKind kind = SpanKind::kernel;
  std::size_t count = 0;
  double total_ns = 0, mean_ns = 0, p50_ns = 0, p99_ns = 0, min_ns = 0, max_ns = 0;
  double share = 0;  // of the sum of all durations
};

struct TopKernels {
  std::vector<KernelUse> top;  // most time first
  std::size_t kernels = 0;     // different names and kinds in all
  std::size_t commands = 0;
  double total_ns = 0;         // sum of all durations
  std::size_t rest_count = 0;  // commands that are not among the top
  double rest_ns = 0;
};

inline constexpr std::size_t kTopKernels = 20;

// Kernels, collectives, copies and memsets with times; equal names of different kinds count separately.
TopKernels top_kernels(const Timeline& timeline, std::size_t most = kTopKernels);

}  // namespace weir
