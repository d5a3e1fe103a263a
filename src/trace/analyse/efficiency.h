// How close the operators of a framework came to what the device can do: their flop and bytes against its peaks. Reads
// the timeline of one device; names are numbers of the whole timeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/analyse/operator_cost.h"
#include "trace/analyse/peaks.h"

namespace weir {

enum class Bound : std::uint8_t { compute, memory };
const char* to_string(Bound bound) noexcept;

// All calls of one operator with the same shapes, whatever the module and the phase.
struct OperatorEfficiency {
  std::uint32_t name = kNoName, shapes = kNoName;
  std::size_t calls = 0;              // that gave the device work
  std::size_t commands = 0;           // kernels, copies and memsets of them, not collectives
  double total_ns = 0;                // sum of the durations of its commands
  std::optional<double> flop, bytes;  // of one call
  NumberType type = NumberType::f32;  // in which it computes; meaningless without flop
  std::optional<double> flop_per_s, bytes_per_s;
  // What holds it back at best, which part of that it reached, and the time by which all its calls would be shorter at
  // that. More than all is possible: caches are faster than memory.
  std::optional<Bound> bound;
  std::optional<double> share, saved_ns;
  std::string reason;  // why something is missing, or in which respect the cost is an estimate
};

// The time of operators of which something is not known, by reason.
struct UnknownEfficiency {
  std::string reason;
  std::size_t operators = 0, commands = 0;
  double total_ns = 0;
};

struct Efficiency {
  std::string reason;                   // why nothing is known at all; then nothing else is filled in
  std::optional<DevicePeaks> peaks;     // empty: rates are known, shares are not
  std::string peaks_reason;             // why there are none
  std::vector<OperatorEfficiency> all;  // most time to save first, then those of which that is not known, by time
  std::vector<UnknownEfficiency> unknown;
  double judged_ns = 0;  // of the operators whose share is known
  double saved_ns = 0;   // by all of them together
};

// `names` are those of the whole timeline; `measured` is better than the table of peaks where it has something.
Efficiency efficiency(const Timeline& timeline, std::span<const std::string> names, const TraceDevice& device,
                      const DevicePeaks* measured = nullptr);

}  // namespace weir
