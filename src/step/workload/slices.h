// Parts of data for lanes: which elements of an operand, and whether there are enough of them. Knows no workload.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "step/workload/layers.h"

namespace weir {

// Some rows of a matrix that is `width` wide; of a vector, some elements.
inline Operand slice(Operand whole, Part rows, std::int64_t width = 1) {
  return {whole.buffer, whole.offset + static_cast<std::uint64_t>(rows.begin * width),
          static_cast<std::uint64_t>(rows.count * width)};
}

// Rejects fewer items than there are streams to work on them.
inline void require_items(const char* what, std::int64_t items, const Lanes& lanes) {
  if (items < lanes.count)
    reject(fmt::format("{} {} for {} streams: some would have no work", items, what, lanes.count),
           "Ask for fewer streams, or for sizes that give more.");
}

// What one stream has of a batch that is cut into `shards` of as many rows each.
struct Share {
  Lane lane;
  Part shards, rows;
};
inline std::vector<Share> shares_of(const Lanes& lanes, std::int64_t shards, std::int64_t shard_rows) {
  std::vector<Share> shares;
  for (int i = 0; i < lanes.count; ++i) {
    const Part own = part_of(shards, lanes.count, i);
    shares.push_back({lanes[i], own, {own.begin * shard_rows, own.count * shard_rows}});
  }
  return shares;
}

}  // namespace weir
