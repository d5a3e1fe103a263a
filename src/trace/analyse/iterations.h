// Which commands of a timeline belong to which iteration: what the analyses of iterations agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::uint32_t kNoIteration = UINT32_MAX;

struct Iterations {
  std::vector<std::uint32_t> of;       // by place in the order that was given: index into numbers, or kNoIteration
  std::vector<std::uint32_t> numbers;  // ascending; empty where the timeline tells no iterations apart

  // The order that was given, apart by iteration; of the first `most` of them.
  std::vector<std::vector<std::uint32_t>> apart(std::span<const std::uint32_t> order,
                                                std::size_t most = SIZE_MAX) const;
};

// A command belongs to the range of `ranges` (ascending, apart) in which the host submitted it, in which it started
// where that is not known. Without ranges Span::iteration counts, if it is not the same everywhere.
Iterations place_in_iterations(const Timeline& timeline, std::span<const std::uint32_t> order,
                               std::span<const TraceRange> ranges);

// Ranges of one process that are iterations by their names ("ProfilerStep#3", "iteration 3", "step 3"), by start; of
// those that overlap the first one stays. Needs a timeline with names, so not a slice.
std::vector<TraceRange> iteration_ranges(const Timeline& whole, std::uint16_t process);

}  // namespace weir
