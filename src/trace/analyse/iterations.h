// Which commands of a timeline belong to which iteration. The analyses of iterations share this definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::uint32_t kNoIteration = UINT32_MAX;

struct Iterations {
  std::vector<std::uint32_t> of;       // by position in the given order: index into numbers, or kNoIteration
  std::vector<std::uint32_t> numbers;  // ascending; empty where the timeline does not distinguish iterations

  // The given order, split by iteration, for the first `most` iterations.
  std::vector<std::vector<std::uint32_t>> apart(std::span<const std::uint32_t> order,
                                                std::size_t most = SIZE_MAX) const;
};

// A command belongs to the range of `ranges` (ascending, disjoint) in which the host submitted it, or in which it
// started where that is not known. Without ranges, Span::iteration is used unless it is the same everywhere.
Iterations place_in_iterations(const Timeline& timeline, std::span<const std::uint32_t> order,
                               std::span<const TraceRange> ranges);

// Ranges of one process whose names mark iterations ("ProfilerStep#3", "iteration 3", "step 3"), by start. A range ends
// where the next one begins; ranges within another one, and a name that is marked twice, are left out. `overlapping`
// receives how many were cut by more than rounding explains. Needs a timeline with names, so not a slice.
std::vector<TraceRange> iteration_ranges(const Timeline& whole, std::uint16_t process,
                                         std::size_t* overlapping = nullptr);

}  // namespace weir
