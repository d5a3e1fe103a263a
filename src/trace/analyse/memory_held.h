// How much memory of a device the program's allocator had: the most and when, and whether it grows from step to step.
// Reads the timeline of one device; names are numbers of the whole timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

struct MemoryPeak {
  std::uint64_t bytes = 0;
  std::int64_t at_ns = kNoTime;            // the first time
  std::uint32_t operation = kNoOperation;  // that allocated then: index into Timeline::operations
  std::uint32_t line = kNoName;            // of the program
  std::optional<std::size_t> step;         // index into the given steps
};

struct MemoryStep {
  std::uint32_t name = kNoName;
  std::uint64_t peak_bytes = 0;  // allocated at most, with what was there when it began
  std::uint64_t end_bytes = 0;   // allocated when it ended
};

struct MemoryHeld {
  std::string reason;  // why nothing is known; then nothing else is filled in
  std::size_t allocations = 0, frees = 0;
  std::uint64_t allocated_bytes = 0;  // by all allocations together
  MemoryPeak allocated, reserved;
  std::vector<MemoryStep> steps;  // in which something is known; by start
  std::size_t grown = 0;          // steps that ended with more than the one before them
  // Of four or more steps, each after the second ended with more than the one before: a leak looks so. Before that a
  // program allocates what stays, such as the state of an optimizer.
  bool grows = false;
};

// `steps` as iteration_ranges() finds them.
MemoryHeld memory_held(const Timeline& timeline, std::span<const TraceRange> steps);

}  // namespace weir
