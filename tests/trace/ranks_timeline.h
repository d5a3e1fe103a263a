// Timelines of several ranks for tests: collectives that all of them leave together, each on a clock of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/timeline.h"
#include "trace/merge.h"

namespace weir {

class RanksTimeline {
 public:
  explicit RanksTimeline(int ranks) : parts_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      Timeline& part = parts_[static_cast<std::size_t>(rank)];
      part.names = {"world", "rows", "columns"};
      part.processes = {{rank, "rank"}};
      part.devices = {{0, rank, "GPU"}};
      part.streams = {{0, 7, "stream 7"}};
    }
  }

  void add(int rank, std::int64_t started, std::int64_t ended, CollectiveKind kind = CollectiveKind::all_reduce,
           std::uint64_t bytes = 0, std::uint32_t group = 0, std::uint32_t ranks = 0) {
    Timeline& part = parts_[static_cast<std::size_t>(rank)];
    Span span;
    span.kind = SpanKind::collective;
    span.started_ns = started;
    span.ended_ns = ended;
    part.collectives.push_back({static_cast<std::uint32_t>(part.spans.size()), kind, ranks, group, bytes});
    part.spans.push_back(span);
  }

  Timeline& part(int rank) { return parts_[static_cast<std::size_t>(rank)]; }

  Timeline merged() const { return merge(parts_); }

 private:
  std::vector<Timeline> parts_;
};

}  // namespace weir
