// How long a device was busy, with what, and how much of its communication and copies compute hid. Reads the timeline
// of one device (trace/slice.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/analyse/iterations.h"

namespace weir {

inline constexpr std::size_t kSpanKinds = 5;  // of SpanKind

// Lengths of unions: what runs twice at once counts once. Host functions are no part of any.
struct BusyTimes {
  std::int64_t first_ns = 0, last_ns = 0;  // first start, last end
  double span_ns = 0;                      // from one to the other
  double busy_ns = 0;                      // anything ran
  double idle_ns = 0;                      // span less busy
  double compute_ns = 0;                   // kernels that are no collectives
  double communication_ns = 0;             // collectives
  double copy_ns = 0;                      // copies and memsets
  double hidden_communication_ns = 0;      // communication while compute ran
  double exposed_communication_ns = 0;     // communication while no compute ran
  double alone_communication_ns = 0;       // communication while neither compute nor copies ran
  double hidden_copy_ns = 0;               // copies while compute ran
  double overlapped_ns = 0;                // two or more commands ran

  double overlapped_share() const noexcept { return busy_ns > 0 ? overlapped_ns / busy_ns : 0; }
};

struct KindTotal {
  std::size_t commands = 0;
  double sum_ns = 0;  // of durations: what runs twice at once counts twice
};

// Commands that the host submitted while an iteration lasted (that started meanwhile, where the time of submission is
// not known), or that carry its number. Iterations may overlap on the device: their times need not sum up to the whole.
struct IterationTimes {
  std::uint32_t number = 0;      // counts from 0; Span::iteration where those are filled
  std::uint32_t name = kNoName;  // of its range
  std::size_t commands = 0;
  std::optional<BusyTimes> times;  // nothing where no command of the device belongs to it
};

struct Breakdown {
  std::optional<BusyTimes> times;
  std::string reason;                       // why there are no times
  std::array<KindTotal, kSpanKinds> kinds;  // by SpanKind; host functions too
  std::size_t commands = 0;                 // of the device, with times
  std::size_t without_times = 0;            // left out
  std::size_t streams = 0;                  // that ran any of them
  std::size_t queues = 0;                   // named by any of them; 0: the source names none
  std::size_t copy_queues = 0;              // of copy engines, besides
  std::vector<IterationTimes> iterations;   // the first kMostIterations
  std::size_t iteration_count = 0;
  std::size_t outside_iterations = 0;  // commands that belong to none
};

inline constexpr std::size_t kMostIterations = 200;

// Of the device's work in `order`, which is by start (trace/device_spans.h) and not empty.
BusyTimes busy_times(const Timeline& timeline, std::span<const std::uint32_t> order);

// `iterations` from iteration_ranges(); where empty, Span::iteration counts if it is not the same everywhere.
Breakdown breakdown(const Timeline& timeline, std::span<const TraceRange> iterations = {});

}  // namespace weir
