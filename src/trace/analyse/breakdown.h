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
#include "trace/intervals.h"

namespace weir {

inline constexpr std::size_t kSpanKinds = 5;  // of SpanKind

// Lengths of unions: time when several commands run counts once. Host functions are not included.
struct BusyTimes {
  std::int64_t first_ns = 0, last_ns = 0;      // first start, last end
  double span_ns = 0;                          // from first start to last end
  double busy_ns = 0;                          // anything ran
  double idle_ns = 0;                          // span minus busy
  double compute_ns = 0;                       // kernels except collectives
  double communication_ns = 0;                 // collectives
  double copy_ns = 0;                          // copies and memsets
  double hidden_communication_ns = 0;          // communication while something else ran: compute or copies
  double exposed_communication_ns = 0;         // communication while nothing else ran
  double communication_beside_compute_ns = 0;  // part of what is hidden: while compute ran
  double copy_beside_compute_ns = 0;           // copies while compute ran
  double overlapped_ns = 0;                    // two or more commands ran
};

struct KindTotal {
  std::size_t commands = 0;
  double sum_ns = 0;  // of durations: time when two commands run counts twice
};

// Commands that the host submitted during an iteration (or that started during it, where the time of submission is not
// known), or that carry its number. Iterations may overlap on the device. What runs beside communication or a copy may
// be of any iteration, and where communication of two iterations runs at once it counts for the one that began first;
// so hidden and exposed communication add up to the device's. Spans, busy and compute times need not.
struct IterationTimes {
  std::uint32_t number = 0;      // counts from 0; Span::iteration where that is filled
  std::uint32_t name = kNoName;  // of its range
  std::size_t commands = 0;
  std::optional<BusyTimes> times;  // empty where no command of the device belongs to it
};

// Copies and memsets of one name.
struct CopyUse {
  std::uint32_t name = kNoName;
  SpanKind kind = SpanKind::copy;
  std::size_t commands = 0;
  std::uint64_t bytes = 0;
  double total_ns = 0;
  double alone_ns = 0;  // while no kernel ran that computes; copies at once count once
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
  std::vector<CopyUse> copies;              // most time alone first
  std::vector<IterationTimes> iterations;   // the first kMaxIterations
  std::size_t iteration_count = 0;
  std::size_t outside_iterations = 0;  // commands outside every iteration
};

inline constexpr std::size_t kMaxIterations = 200;

// The times of a device, as a whole or of some of its commands. The timeline must outlive it.
class DeviceTimes {
 public:
  // `order` is the device's work, sorted by start (trace/device_spans.h).
  DeviceTimes(const Timeline& timeline, std::span<const std::uint32_t> order);

  // Of some commands of that order, which are sorted in the same way and not none.
  BusyTimes of(std::span<const std::uint32_t> own) const;
  // Of a copy or memset: how long it ran while no kernel did, nor an earlier copy.
  double alone_ns(std::uint32_t span) const;

 private:
  const Timeline& timeline_;
  std::vector<std::int64_t> counts_from_;  // by span: where no earlier one of its kind runs any more
  IntervalCover compute_, compute_or_copy_;
};

// `iterations` is from iteration_ranges(); where it is empty, Span::iteration is used unless it is the same everywhere.
Breakdown breakdown(const Timeline& timeline, std::span<const TraceRange> iterations = {});

}  // namespace weir
