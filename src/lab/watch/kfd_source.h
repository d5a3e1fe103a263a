// Turns KFD's snapshots into samples: the current state of each queue, and how far its read pointer has moved since the
// previous sample. Knows decoded registers; reads files only through amd/kfd/snapshot.h.
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

// The positions of a queue's pointers on one XCC, in dwords.
struct RingPosition {
  int xcc = 0;
  std::uint64_t read_dword = 0, write_dword = 0, ring_dwords = 0;
  std::optional<std::uint64_t> backlog_dwords;
};

// The number of dwords read between two snapshots. The read pointer wraps at the ring's end, so alone it gives a lower
// bound. A write pointer that has gone beyond the ring's size does not wrap, and then the result is exact. Unknown if
// the pointers belong to different rings or went back: a recreated queue may reuse the ring of its predecessor.
SampleValue dwords_read(const RingPosition& before, const RingPosition& after);
// The minimum over all XCCs; each reads the same ring independently.
SampleValue dwords_read(const std::vector<RingPosition>& before, const std::vector<RingPosition>& after);

class KfdRates {
 public:
  // Takes snapshots in order of time. A queue's rates are known from its second appearance on.
  Sample sample_of(const kfd::Snapshot& snapshot);

 private:
  struct Seen {
    std::vector<RingPosition> positions;  // when it was last mapped
    bool is_mapped = false;               // in the previous sample
    double packets = 0;                   // since the watch began
    bool is_at_least = false;
  };
  static void add_rate(std::vector<RingPosition> positions, const std::string& why_none,
                       std::optional<std::int64_t> window_ns, Seen& seen, Row& row);

  std::map<std::string, Seen> seen_;  // queues of the previous sample
  std::int64_t taken_ns_ = INT64_MIN;
};

// Whether any queues can be seen.
bool can_watch(const kfd::Snapshot& snapshot);

// For Feed: reads a snapshot whenever one is due.
Feed::Body watch_kfd(kfd::Roots roots);

}  // namespace weir::watch
