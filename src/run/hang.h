// What can be said about a run that does not go on: which commands its streams are at, and what these wait for. Knows
// steps, placements and counts of commands; asks nobody, and prints nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace weir {

// One command of one iteration.
struct HangPlace {
  CommandId command = 0;
  std::uint64_t iteration = 0;
  StreamId stream = 0;
  bool operator==(const HangPlace&) const = default;
};

struct StreamHang {
  enum class State : std::uint8_t {
    idle,         // all that it was given has ended, and the iteration with it
    unsubmitted,  // all that it was given has ended; the host owes it the rest of the iteration
    waits,        // for commands of other streams
    collective,   // for other ranks
    absent,       // for other ranks, which wait for this one: it never joined
    held,         // a probe runs until its flag is set
    runs,         // nothing is in its way: it runs, or waits for room in its hardware queue
  };
  StreamId stream = 0;
  State state = State::idle;
  StreamProgress progress;
  std::optional<HangPlace> last;     // that ended
  std::optional<HangPlace> next;     // the first that did not
  std::vector<HangPlace> waits_for;  // that have not ended; of a probe, those that would set its flag
  std::uint64_t collective = 0;      // of the stream, from 1, where the next command is one
};

struct HangReport {
  std::vector<StreamHang> streams;  // none where the device does not tell
  std::vector<StreamId> cycle;      // each waits for the next and the last for the first; empty: none was found
  std::string text;                 // for people, 80 columns
};

// What is known beside the step.
struct HangFacts {
  Ranks ranks;
  std::vector<std::string> roles;
  // Collectives that this rank has started, by stream, since the session began; empty: nobody counted.
  std::vector<std::uint64_t> collectives;
  std::int64_t still_ns = 0;  // since something was last seen to happen
};

// `progress` as the session says it, by stream.
HangReport diagnose(const Step& step, const Placement& placement, std::span<const StreamProgress> progress,
                    const HangFacts& facts);

}  // namespace weir
