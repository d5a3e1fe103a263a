// What it costs to continue in another stream or hardware queue, measured by gaps between commands. Reads timelines
// only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "measure/timeline.h"

namespace weir {

// Medians over pairs of consecutive commands between which nothing ran and the host was not late. Host functions are
// not included.
struct SwitchGap {
  std::size_t count = 0;
  double median_ns = 0;
};

struct QueueSwitch {
  std::optional<SwitchGap> same_stream;
  std::optional<SwitchGap> same_queue;     // other stream, same hardware queue
  std::optional<SwitchGap> other_queue;    // other stream, other hardware queue
  std::optional<SwitchGap> unknown_queue;  // other stream, queues not known
  // Gap between streams minus gap within a stream; empty where either side has too few pairs.
  std::optional<double> same_queue_overhead_ns, other_queue_overhead_ns, unknown_queue_overhead_ns;
  std::size_t host_bound = 0;  // pairs left out because the second command was submitted after the first had ended, or
                               // a host function ran in between
  std::size_t unknown_submit = 0;  // pairs left out because the time of submission of the second is not known
  std::size_t other_engine = 0;    // pairs left out because a copy engine took part: that is not a switch of queues
  std::string reason;              // why there is nothing
};

inline constexpr std::size_t kMinGaps = 10;

QueueSwitch queue_switch(const Timeline& timeline);

}  // namespace weir
