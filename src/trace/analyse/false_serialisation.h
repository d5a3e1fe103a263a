// Commands that waited for one of another stream only because they shared a hardware queue, though nothing known tied
// them. Reads the timeline of one device; cannot know whether the device had room for both, so all of it is "up to".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kMostSerialisedPairs = 10;
inline constexpr std::size_t kMostSerialisedStreams = 20;

// `second` was ready and waited for `first`. Indices into spans.
struct SerialisedPair {
  std::uint32_t first = 0, second = 0;
  std::uint16_t first_stream = 0, second_stream = 0;
  std::int32_t queue = kNoQueue;
  std::uint32_t first_name = kNoName, second_name = kNoName;
  double lost_ns = 0;      // for so long the second was ready, and the first ran or (is_behind) was not ready itself
  double gap_ns = 0;       // from the end of the first (is_behind: when it was ready) to the start of the second
  bool is_behind = false;  // the first had not even started: it stood in front of the second in the queue
};

struct SerialisedStreams {
  std::uint16_t a = 0, b = 0;  // a < b: either may have waited
  std::int32_t queue = kNoQueue;
  std::size_t pairs = 0;  // of both kinds
  double lost_ns = 0;
};

struct FalseSerialisation {
  std::size_t pairs = 0;              // back to back: the second started when the first had ended
  double lost_ns = 0;                 // in these, summed over commands
  std::size_t behind = 0;             // commands behind another stream's that was not ready: head-of-line blocking
  double behind_ns = 0;               // of these, summed over commands
  double wall_ns = 0;                 // while at least one command waited so, of either kind: at most the span
  std::vector<SerialisedPair> worst;  // most lost first, at most kMostSerialisedPairs
  std::vector<SerialisedStreams> by_streams;  // most lost first, at most kMostSerialisedStreams
  std::size_t stream_pairs = 0;               // how many of those there are
  std::size_t back_to_back = 0;  // pairs of two streams on one queue that ran so, tied, not ready or not known included
  std::size_t not_ready = 0;     // of these: the second was tied, or became ready only when the first had ended
  std::size_t unknown = 0;       // of these: nothing says when the second was submitted
  double gap_limit_ns = 0;       // up to this gap it counts as back to back
  std::string gap_limit_origin;  // in words
  bool are_dependencies_known = false;  // false: the source records no waits, so these are candidates only
  std::string reason;                   // why there is nothing
};

// A command is ready when the driver had it, the command before it on its stream had ended, and everything that it is
// known to depend on had. Chains need no search: what lies between two commands that depend on each other in several
// steps ends after the first of them, and that end is looked at; where clocks disagree the latest end along the chain
// is handed on. Not known are implicit waits (the legacy default stream, allocations) and waits that the source
// dropped. Copy engines are left out: they are one engine each. A queue hands its commands out in the order in which it
// got them: one that is not ready stops those behind it, until it is ready. Some sorts and one look at each command and
// dependency.
FalseSerialisation false_serialisation(const Timeline& timeline);

}  // namespace weir
