// How long commands were ready to run but queued behind an unrelated command that could not start, in the same hardware
// queue. Knows timelines and predecessors; no device.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

struct HeadOfLine {
  double waited_ns = 0;      // summed over all commands of an iteration, mean over iterations
  double longest_ns = 0;     // of a single command
  std::size_t commands = 0;  // that waited like this in an iteration, mean rounded
  std::size_t total = 0;     // in an iteration
  // A command that others queued behind, by how much they waited for it.
  struct Blocker {
    std::uint32_t command = 0;
    std::uint16_t stream = 0;
    double caused_ns = 0;  // per iteration
  };
  std::vector<Blocker> blockers;  // most first, at most 5
  std::string reason;             // why there is nothing
};

// `predecessors(c)` are the commands of the same iteration that must end before c may start. Empty (with a reason)
// where the timeline does not know queues. A command is ready when it was submitted and its predecessors and the
// command before it on its stream have ended. It then waits needlessly until all commands that entered its queue before
// it have left.
HeadOfLine head_of_line(const Timeline& timeline,
                        const std::function<std::span<const std::uint32_t>(std::uint32_t)>& predecessors);

}  // namespace weir
