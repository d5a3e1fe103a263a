// Which pairs of commands may touch the same memory while nothing orders them. Knows logs; runs nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lab/race/log.h"

namespace weir::race {

// Two calls of a log, the earlier one first; `first` may still be under way when `second` begins.
struct Suspect {
  std::uint32_t first = 0, second = 0;  // indices of calls; kHost: what the host does when it goes on
  std::uint64_t begin = 0, end = 0;     // what both touch
  bool is_exact = false;                // both ranges are known, and one is known to write
  std::int64_t apart_ns = 0;            // between their submissions
  std::uint32_t repeats = 1;  // pairs of the same labels, streams and kind of meeting, of which this stands for all
  double score = 0;           // higher: more probable
};
inline constexpr std::uint32_t kHost = UINT32_MAX;

struct Suspects {
  std::vector<Suspect> pairs;  // best first; of each place in the program the nearest ones, at most kMostAlike
  std::uint64_t found = 0;     // pairs in all
  std::uint64_t cut = 0;       // commands and accesses of which more pairs may exist: there was too much to compare
};
inline constexpr std::size_t kMostAlike = 3;

// At most `limit` are kept.
Suspects find_suspects(const Log& log, std::size_t limit = 1000);
// Only those whose first call is among `firsts` (by call), and of each place the earliest ones.
Suspects find_suspects_among(const Log& log, const std::vector<bool>& firsts, std::size_t limit);
// All pairs of the place of this one, itself included: the same labels and streams. At most `limit`.
std::vector<Suspect> repeats_of(const Log& log, const Suspect& suspect, std::size_t limit);

}  // namespace weir::race
