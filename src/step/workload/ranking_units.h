// Parameters of a model in units, and the operations on them between ranks: gathers from shards, gradient reductions,
// AdamW. Sharded like FSDP2, or replicated like DDP. Knows no model: a unit is a number of elements.
#pragma once

#include <vector>

#include "step/workload/layers.h"

namespace weir {

class RankingUnits {
 public:
  enum Role : std::uint8_t { kCompute, kAllGather, kReduceScatter, kAux };

  struct Options {
    bool is_sharded = true;  // false: every rank has all parameters
    std::int64_t prefetch = 1;
    bool reshards = true;  // after forward; backward gathers again
    std::int64_t bucket_bytes = 0;
    std::int64_t fewest_pieces = 1;  // of a unit's gathers, reductions and updates
    std::int64_t accumulation = 1;
    std::int64_t gradient_slots = 2;
    std::int64_t shard_group = 0;  // ranks that share one copy of the parameters; 0: all
    float clip = 0;
    // AdamW, and how its rate rises and falls: see kernel/clip.cpp.
    float rate = 1e-3f, least_rate = 0, decay = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
    std::int64_t schedule = 0, warmup_steps = 0, total_steps = 0;
  };
  struct Unit {
    std::int64_t count = 0;  // elements
    float scale = 1;         // of its initial values
  };

  // Adds the masters before any other buffer, so that a seed gives the same parameters on any number of ranks and in
  // both modes. `lanes` by role.
  RankingUnits(Layers& layers, const std::vector<RoleLanes>& lanes, const Options& options,
               const std::vector<Unit>& units);
  // All other buffers.
  void allocate();

  // The parameters of a unit for the next computation; also gathers those of later units. Forward uses units in order,
  // backward all between the last and the first in reverse, for each micro-batch.
  Operand use(std::size_t unit);
  // The buffer for a unit's gradient; called once per micro-batch, in reverse order.
  Operand gradient(std::size_t unit, std::int64_t micro_batch);
  // Called when a unit's gradient is complete: sums over ranks.
  void reduce(std::size_t unit);
  // After all units: clips and steps.
  void step();
  // {steps done, clip factor, learning rate}; step() changes it.
  Operand state() const { return {state_}; }

 private:
  struct Sharded {
    std::int64_t count = 0, flat = 0;        // elements, without and with padding
    std::int64_t pieces = 1, piece = 0;      // of gathers and reductions
    std::int64_t shard = 0, own = 0;         // of this rank: over all pieces, and of one piece
    std::int64_t begin = 0;                  // replicated: the offset of its gradient
    std::int64_t parts = 1, first_part = 0;  // of its sum of squares
    float scale = 1;
    BufferId master = 0, low = 0, mean = 0, square = 0;
    BufferId gathered = 0, gradient = 0, reduced = 0, summed = 0;
  };
  static std::uint64_t elements(std::int64_t count) { return static_cast<std::uint64_t>(count); }
  void cut(Sharded& unit) const;
  bool has_slots() const { return options_.is_sharded && options_.reshards; }
  bool shares_gradients() const {
    return options_.is_sharded && options_.accumulation == 1 && options_.gradient_slots > 0;
  }
  BufferId gradient_buffer(std::size_t unit) const;
  Operand gathered(std::size_t turn) const;
  void gather(std::size_t turn);
  void gather_through(std::size_t turn);
  void all_reduce_until(std::int64_t complete);
  void sum_squares(std::size_t unit);
  Operand reduced(const Sharded& unit) const;
  Lane next(Role role) { return lanes_[role][next_[role]++]; }

  Layers& layers_;
  StepBuilder& step_;
  const std::vector<RoleLanes>& lanes_;
  Options options_;
  // Parameters are sharded over neighbouring ranks; each such group has a copy of them.
  std::int64_t group_, copies_;
  RankGroup shard_ranks_, copy_ranks_;
  std::vector<Sharded> units_;
  std::vector<std::size_t> turns_;  // units in the order of their gathers
  std::size_t turn_ = 0, gathers_ = 0;
  std::int64_t largest_ = 0;  // the largest unit, which is the length of a slot
  std::vector<BufferId> slots_, gradient_slots_;
  BufferId all_gradients_ = 0, all_reduced_ = 0;  // replicated: of all units, in backward order
  std::int64_t reduced_until_ = 0;                // elements of them
  std::size_t squared_ = 0;                       // units among them, in that order
  BufferId squares_ = 0, state_ = 0;
  std::int64_t parts_ = 0;
  std::int64_t next_[4] = {};
};

}  // namespace weir
