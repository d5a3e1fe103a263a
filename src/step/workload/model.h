// What all models share: a builder, layers, streams divided among roles, and the parts of data that lanes process.
// Knows no workload.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "step/workload/layers.h"
#include "step/workload/params.h"

namespace weir {

// Some rows of a matrix of this `width`; for a vector, some elements.
inline Operand slice(Operand whole, Part rows, std::int64_t width = 1) {
  return {whole.buffer, whole.offset + static_cast<std::uint64_t>(rows.begin * width),
          static_cast<std::uint64_t>(rows.count * width)};
}

// Rejects fewer items than there are streams to process them.
inline void require_items(const char* what, std::int64_t items, const RoleLanes& lanes) {
  if (items < lanes.count)
    reject(fmt::format("{} {} for {} streams: some would have no work", items, what, lanes.count),
           "Ask for fewer streams, or for sizes that give more.");
}

// The number of equal shards that a batch is cut into: `fewest`, doubled until every stream of `lanes` has one.
inline std::int64_t shards_for(std::int64_t fewest, const RoleLanes& lanes) {
  while (fewest < lanes.count) fewest *= 2;
  return fewest;
}
inline std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

// One stream's share of a batch that is cut into `shards` of equal size.
struct Share {
  Lane lane;
  Part shards, rows;
};
inline std::vector<Share> shares_of(const RoleLanes& lanes, std::int64_t shards, std::int64_t shard_rows) {
  std::vector<Share> shares;
  for (int i = 0; i < lanes.count; ++i) {
    const Part own = part_of(shards, lanes.count, i);
    shares.push_back({lanes[i], own, {own.begin * shard_rows, own.count * shard_rows}});
  }
  return shares;
}

// The base class of models, which add their sizes and build their step once.
class Model {
 protected:
  // `shares` as for divide_streams().
  Model(const Params& params, int stream_count, std::initializer_list<int> shares)
      : step_(params.seed, params.ranks),
        layers_(step_, params.precision),
        stream_count_(stream_count),
        lanes_(divide_streams(stream_count, shares)) {}

  static std::uint64_t elements(std::int64_t count) { return static_cast<std::uint64_t>(count); }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  // Values that differ between ranks, like samples.
  Operand samples(std::int64_t count, float scale = 1) {
    return {step_.sharded(layers_.type(), elements(count), scale)};
  }
  Operand integers(std::int64_t count, std::int64_t limit) { return {step_.integers(elements(count), limit)}; }
  // The same integer, `count` times.
  Operand integer(std::int64_t value, std::int64_t count = 1) {
    return {step_.constant(ElementType::i32, elements(count), static_cast<float>(value))};
  }
  Step finish() { return std::move(step_).seal(stream_count_); }
  Step finish(std::int64_t work) {
    step_.work(static_cast<double>(work));
    return finish();
  }

  StepBuilder step_;
  Layers layers_;
  int stream_count_;
  std::vector<RoleLanes> lanes_;  // by role
};

// Workload::build for a model.
template <class Kind>
Step build_model(const Params& params, int stream_count) {
  return Kind(params, stream_count).build();
}

}  // namespace weir
