// Diagnoses a run that hangs: which commands its streams have reached, and what these wait for. Knows steps, placements
// and command counts; queries no device, and prints nothing.
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
    idle,         // everything submitted has ended, and the iteration is complete
    unsubmitted,  // everything submitted has ended; the rest of the iteration was not submitted
    waits,        // for commands of other streams
    collective,   // for other ranks
    absent,       // for other ranks, which wait for this one: it has not joined
    held,         // a probe runs until its flag is set
    runs,         // not blocked: it runs, or waits for room in its hardware queue
  };
  StreamId stream = 0;
  State state = State::idle;
  StreamProgress progress;
  std::optional<HangPlace> last;     // the last that ended
  std::optional<HangPlace> next;     // the first that did not end
  std::vector<HangPlace> waits_for;  // not ended; for a probe, those that would set its flag
  std::uint64_t collective = 0;      // number in the stream, from 1, if the next command is one
};

struct HangReport {
  std::vector<StreamHang> streams;  // empty if the device does not report progress
  std::vector<StreamId> cycle;      // each waits for the next, the last for the first; empty: none was found
  std::string text;                 // for users, 80 columns
};

// Facts besides the step.
struct HangFacts {
  Ranks ranks;
  std::vector<std::string> roles;
  // Collectives that this rank has started since the session began, by stream; empty: not counted.
  std::vector<std::uint64_t> collectives;
  std::int64_t still_ns = 0;  // since the last observed change
};

// `progress`: the session's, by stream.
HangReport diagnose(const Step& step, const Placement& placement, std::span<const StreamProgress> progress,
                    const HangFacts& facts);

}  // namespace weir
