// How long a device was busy, with what, and how much of its communication and copies were hidden by compute. Reads the
// timeline of one device (trace/analyse/slice.h).
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

// Lengths of unions: time when several commands run counts once. Host functions are not included.
struct BusyTimes {
  std::int64_t first_ns = 0, last_ns = 0;  // first start, last end
  double span_ns = 0;                      // from first start to last end
  double busy_ns = 0;                      // anything ran
  double idle_ns = 0;                      // span minus busy
  double compute_ns = 0;                   // kernels except collectives
  double communication_ns = 0;             // collectives
  double copy_ns = 0;                      // copies and memsets
  double hidden_communication_ns = 0;      // communication while compute ran
  double exposed_communication_ns = 0;     // communication while no compute ran
  double alone_communication_ns = 0;       // communication while neither compute nor copies ran
  double hidden_copy_ns = 0;               // copies while compute ran
  double overlapped_ns = 0;                // two or more commands ran
};

struct KindTotal {
  std::size_t commands = 0;
  double sum_ns = 0;  // of durations: time when two commands run counts twice
};

// Commands that the host submitted during an iteration (or that started during it, where the time of submission is not
// known), or that carry its number. Iterations may overlap on the device, so their times need not add up to the whole.
struct IterationTimes {
  std::uint32_t number = 0;      // counts from 0; Span::iteration where that is filled
  std::uint32_t name = kNoName;  // of its range
  std::size_t commands = 0;
  std::optional<BusyTimes> times;  // empty where no command of the device belongs to it
};

struct Breakdown {
  std::optional<BusyTimes> times;
  std::string reason;                       // why there are no times
  std::array<KindTotal, kSpanKinds> kinds;  // by SpanKind; host functions too
  std::size_t commands = 0;                 // of the device, with times
  std::size_t without_times = 0;            // left out
  std::size_t streams = 0;                  // that ran any of these commands
  std::size_t queues = 0;                   // named by any of these commands; 0: the source names none
  std::size_t copy_queues = 0;              // of copy engines, counted separately
  std::vector<IterationTimes> iterations;   // the first kMaxIterations
  std::size_t iteration_count = 0;
  std::size_t outside_iterations = 0;  // commands outside every iteration
};

inline constexpr std::size_t kMaxIterations = 200;

// For the device's work in `order`, which is sorted by start (trace/device_spans.h) and not empty.
BusyTimes busy_times(const Timeline& timeline, std::span<const std::uint32_t> order);

// `iterations` is from iteration_ranges(); where it is empty, Span::iteration is used unless it is the same everywhere.
Breakdown breakdown(const Timeline& timeline, std::span<const TraceRange> iterations = {});

}  // namespace weir
