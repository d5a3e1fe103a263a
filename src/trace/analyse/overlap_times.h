// How well each iteration of a device hid its communication: exposed communication ran while nothing else did, hidden
// is the rest. Reads the timeline of one device (trace/analyse/slice.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/analyse/breakdown.h"

namespace weir {

inline constexpr std::size_t kCollectiveKinds = 9;  // of CollectiveKind

// For some commands of a device, beside all others.
struct OverlapTimes {
  std::uint32_t iteration = 0;   // as IterationTimes::number
  std::uint32_t name = kNoName;  // of its range
  std::size_t commands = 0;
  BusyTimes times;
  std::array<double, kCollectiveKinds> collective_ns{};  // by kind: unions, so their sum may exceed communication
  double compute_sum_ns = 0;        // of durations; divided by that of a run without communication it is the inflation
  double communication_sum_ns = 0;  // of durations

  double exposed_ns() const noexcept { return times.exposed_communication_ns; }
  double hidden_ns() const noexcept { return times.hidden_communication_ns; }
  // Hidden over all communication; empty where there is none.
  std::optional<double> efficiency() const noexcept {
    return times.communication_ns > 0 ? std::optional(hidden_ns() / times.communication_ns) : std::nullopt;
  }
};

struct OverlapFound {
  std::optional<OverlapTimes> whole;
  // All iterations by number, except those without commands. A single entry for the whole where the timeline does not
  // distinguish iterations.
  std::vector<OverlapTimes> iterations;
  std::string reason;  // why there is nothing
};

// `iterations` is as for breakdown(). Kinds are those of Timeline::collectives.
OverlapFound overlap_times(const Timeline& timeline, std::span<const TraceRange> iterations = {});

}  // namespace weir
