// Collectives by kind, group and size: how long they took and at what bandwidth. A collective's time includes its wait
// for other ranks, so bandwidths are what the program achieved, not what the links can do. Reads one device or one
// rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

struct CollectiveClass {
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t group = kNoName;
  std::uint32_t ranks = 0;                  // 0 where unknown
  std::optional<std::uint64_t> from_bytes;  // a power of two: sizes from here to just below twice this
  std::size_t count = 0;
  double total_ns = 0, p50_ns = 0, p99_ns = 0;
  std::optional<double> bytes;  // sum; empty where unknown
  // Bytes per second, as defined by NCCL's tests. Empty where bytes (or ranks, for the bus) are unknown. The best is
  // that of the one collective that was fastest: it waited least for other ranks.
  std::optional<double> algorithm_bandwidth, bus_bandwidth, best_bus_bandwidth;
};

struct Collectives {
  std::vector<CollectiveClass> classes;  // by total time
  std::size_t count = 0;
  double total_ns = 0;  // sum of durations, not a union
  std::string reason;   // why there are none, or why bandwidths are missing
};

Collectives collectives(const Timeline& timeline);

// By span; unknown where Timeline::collectives has no entry.
std::vector<CollectiveKind> collective_kinds(const Timeline& timeline);

// What the links carry for each byte of a collective among `ranks`: 2(n-1)/n for all_reduce, (n-1)/n for all_gather,
// reduce_scatter and all_to_all, else 1. Empty where ranks matter but are unknown.
std::optional<double> bus_factor(CollectiveKind kind, std::uint32_t ranks);

}  // namespace weir
