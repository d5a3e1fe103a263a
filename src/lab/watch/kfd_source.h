// KFD's snapshots as samples: what is on each queue now, and how far its read pointer came since the sample before.
// Knows decoded registers; reads no file itself but through kfd/snapshot.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "amd/kfd/snapshot.h"
#include "lab/watch/feed.h"
#include "lab/watch/sample.h"

namespace weir::watch {

// Where a queue's pointers stand on one XCC, in dwords.
struct RingPosition {
  int xcc = 0;
  std::uint64_t read_dword = 0, write_dword = 0, ring_dwords = 0;
  std::optional<std::uint64_t> backlog_dwords;
};

// How many dwords were read between two looks. The read pointer wraps at the ring's end, so by itself it gives a lower
// bound. A write pointer that has gone beyond the ring's size counts on, and what it says is exact. Unknown where the
// pointers are of different rings, or went back: a queue that was made anew may have the ring of the one before.
Figure dwords_read(const RingPosition& before, const RingPosition& after);
// The least of all XCCs, which read the same ring each for itself.
Figure dwords_read(const std::vector<RingPosition>& before, const std::vector<RingPosition>& after);

class KfdRates {
 public:
  // Samples in the order of time; rates of a queue are known from the second on in which it is seen.
  Sample sample_of(const kfd::Snapshot& snapshot);

 private:
  struct Seen {
    std::vector<RingPosition> positions;  // where it was mapped last
    bool is_mapped = false;               // in the sample before
    double packets = 0;                   // since the watch began
    bool is_at_least = false;
  };
  static void add_rate(std::vector<RingPosition> positions, const std::string& why_none,
                       std::optional<std::int64_t> window_ns, Seen& seen, Row& row);

  std::map<std::string, Seen> seen_;  // queues of the sample before
  std::int64_t taken_ns_ = INT64_MIN;
};

// Whether there is anything to watch: queues can be seen.
bool can_watch(const kfd::Snapshot& snapshot);

// For Feed: reads a snapshot whenever one is due.
Feed::Body watch_kfd(kfd::Roots roots);

}  // namespace weir::watch
