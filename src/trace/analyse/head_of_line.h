// What commands waited for in vain: ready to run, but behind an unrelated command that could not start, in the same
// hardware queue. Knows timelines and who comes before whom; no device.
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
  double longest_ns = 0;     // of one command
  std::size_t commands = 0;  // of an iteration that waited so, mean rounded
  std::size_t total = 0;     // of an iteration
  // Who was waited for most: a command that others sat behind.
  struct Blocker {
    std::uint32_t command = 0;
    std::uint16_t stream = 0;
    double caused_ns = 0;  // per iteration
  };
  std::vector<Blocker> blockers;  // most first, at most 5
  std::string reason;             // why there is nothing
};

// `predecessors(c)` are the commands of the same iteration that must have ended before c may start. Nothing (with a
// reason) where the timeline does not know queues. A command is ready when it was submitted, its predecessors and the
// command before it on its stream have ended; it waits in vain until the last of the commands that came into its queue
// before it has left, as far as that is later.
HeadOfLine head_of_line(const Timeline& timeline,
                        const std::function<std::span<const std::uint32_t>(std::uint32_t)>& predecessors);

}  // namespace weir
