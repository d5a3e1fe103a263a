// Commands that waited for one of another stream only because they shared a hardware queue, though no known dependency
// tied them. Reads the timeline of one device; cannot know whether the device had room for both, so every figure is an
// upper bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kMaxSerialisedPairs = 10;
inline constexpr std::size_t kMaxSerialisedStreams = 20;

// `second` was ready and waited for `first`. Indices into spans.
struct SerialisedPair {
  std::uint32_t first = 0, second = 0;
  std::uint16_t first_stream = 0, second_stream = 0;
  std::int32_t queue = kNoQueue;
  std::uint32_t first_name = kNoName, second_name = kNoName;
  double lost_ns = 0;      // how long the second was ready while the first ran or (is_behind) was not ready itself
  double gap_ns = 0;       // from the end of the first (is_behind: when it was ready) to the start of the second
  bool is_behind = false;  // the first had not even started: it was ahead of the second in the queue
};

struct SerialisedStreams {
  std::uint16_t a = 0, b = 0;  // a < b: either may have waited
  std::int32_t queue = kNoQueue;
  std::size_t pairs = 0;  // of both kinds
  double lost_ns = 0;
};

struct FalseSerialisation {
  std::size_t pairs = 0;   // back to back: the second started when the first had ended
  double lost_ns = 0;      // in these pairs, summed over commands
  std::size_t behind = 0;  // commands queued behind another stream's that was not ready: head-of-line blocking
  double behind_ns = 0;    // of these, summed over commands
  double wall_ns = 0;      // time during which at least one command waited like this, of either kind: at most the span
  std::vector<SerialisedPair> worst;          // most lost first, at most kMaxSerialisedPairs
  std::vector<SerialisedStreams> by_streams;  // most lost first, at most kMaxSerialisedStreams
  std::size_t stream_pairs = 0;               // the number of all such pairs of streams
  std::size_t back_to_back = 0;  // pairs of two streams on one queue, including tied, not ready and unknown ones
  std::size_t not_ready = 0;     // part of these: the second was tied, or became ready only when the first had ended
  std::size_t unknown = 0;       // part of these: the time of submission of the second is not known
  double gap_limit_ns = 0;       // pairs with at most this gap count as back to back
  std::string gap_limit_origin;  // in words
  bool are_dependencies_known = false;  // false: the source records no waits, so these are only candidates
  std::string reason;                   // why there is nothing
};

// A command is ready when the driver has it, the command before it on its stream has ended, and all its known
// dependencies have ended. Chains need no search: a command between two that depend on each other in several steps ends
// after the first of them, and that end is examined; where clocks disagree, the latest end along the chain is passed
// on. Implicit waits (the legacy default stream, allocations) and waits that the source dropped are not known. Copy
// engines are left out: each is a single engine. A queue issues its commands in the order in which it received them:
// one that is not ready blocks those behind it until it is ready. Costs a few sorts and one visit per command and
// dependency.
FalseSerialisation false_serialisation(const Timeline& timeline);

}  // namespace weir
