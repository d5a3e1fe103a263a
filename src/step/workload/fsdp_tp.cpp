// A training step of a transformer with sharded parameters (FSDP) and blocks split over tensor-parallel parts: gathers,
// reductions and partial sums run on streams of their own, beside the compute that needs them.
#include <algorithm>
#include <cmath>

#include "step/workload/list.h"
#include "step/workload/model.h"
#include "step/workload/transformer.h"

namespace weir::workload_list {
namespace {

constexpr std::int64_t kHalves = 2;  // a partial sum is added up in two halves of its rows

class ShardedTrainer : Model {
  enum Role : std::uint8_t { kCompute, kAllGather, kReduceScatter, kTensorParallel };

 public:
  ShardedTrainer(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1, 1, 1}),
        blocks_(params.integer("blocks")),
        hidden_(params.integer("hidden")),
        split_(params.integer("tensor_parallel")),
        // Every stream has a part of some micro-batch, and a piece of some gather and reduction.
        batch_(std::max(params.integer("batch"), divided_up(lanes_[kCompute].count, std::min(split_, kHalves)))),
        rows_(params.integer("sequence")),
        shards_(std::max(params.integer("shards"), divided_up(lanes_[kCompute].count, split_))),
        ranks_(params.ranks.count),
        part_(layers_, rows_, hidden_, hidden_ / split_, params.integer("heads") / split_) {
    require_multiple("hidden", hidden_, "heads", params.integer("heads"));
    require_multiple("heads", params.integer("heads"), "tensor_parallel", split_);
    // One flat parameter per block and part, like FSDP, padded so that all shards have the same length.
    const std::int64_t used = TransformerPart::flat_count(hidden_, hidden_ / split_), pieces = shards_ * ranks_;
    flat_ = (used + pieces - 1) / pieces * pieces;
  }

  Step build() {
    allocate();
    gather(0, 0);
    for (std::int64_t b = 0; b < blocks_; ++b) {
      if (b + 1 < blocks_) gather(b + 1, b + 1);  // one block ahead; its slot is free once block b - 1 has ended
      forward(b, b);
    }
    for (std::int64_t m = 0; m < batch_; ++m)
      gradient_.push_back(layers_.add(lane(m, 0), states_.back()[at(m)], target_[at(m)], rows_ * hidden_, 1, -1));
    // Backward gathers again what forward released; the last block is still there.
    for (std::int64_t i = 0; i < blocks_; ++i) {
      const std::int64_t b = blocks_ - 1 - i, turn = blocks_ - 1 + i;
      if (b > 0) gather(b - 1, turn + 1);
      backward(b, turn);
      reduce_scatter(b);
    }
    return finish(batch_);
  }

 private:
  Lane lane(std::int64_t m, std::int64_t t) const { return lanes_[kCompute][m * split_ + t]; }
  // Gathered parameters of part t, in two alternating slots.
  BufferId gathered(std::int64_t turn, std::int64_t t) const { return gathered_[at(turn % 2 * split_ + t)]; }
  TransformerPart::Kept& kept(std::int64_t b, std::int64_t m, std::int64_t t) {
    return kept_[at((b * batch_ + m) * split_ + t)];
  }
  Operand share(Operand all, std::int64_t t) const { return slice(all, {t, 1}, rows_ * hidden_); }

  void allocate() {
    const ElementType type = layers_.type();
    const float scale = std::sqrt(3.0f / static_cast<float>(hidden_));
    for (std::int64_t i = 0; i < blocks_ * split_; ++i)
      shard_.push_back(step_.sharded(type, elements(flat_ / ranks_), scale));
    for (std::int64_t i = 0; i < blocks_ * split_; ++i) {
      // Each micro-batch is a replica with a gradient of its own; the padding of the flat parameter stays 0.
      replicas_.push_back(step_.constant(type, elements(batch_ * flat_), 0));
      reduced_.push_back(step_.output(type, elements(flat_)));
      result_.push_back(step_.output(type, elements(flat_ / ranks_)));
    }
    for (std::int64_t i = 0; i < 2 * split_; ++i) gathered_.push_back(step_.output(type, elements(flat_)));
    states_.resize(1);
    for (std::int64_t m = 0; m < batch_; ++m) {
      states_[0].push_back(samples(rows_ * hidden_));
      target_.push_back(samples(rows_ * hidden_));
    }
    kept_.resize(at(blocks_ * batch_ * split_));
  }

  // Gathers block b's parameters, in pieces over the streams.
  void gather(std::int64_t b, std::int64_t turn) {
    const std::uint64_t piece = elements(flat_ / shards_), own = piece / elements(ranks_);
    for (std::int64_t t = 0; t < split_; ++t)
      for (std::int64_t f = 0; f < shards_; ++f)
        step_.collective(CollectiveOp::all_gather, lanes_[kAllGather][t * shards_ + f],
                         {shard_[at(b * split_ + t)], elements(f) * own, own},
                         {gathered(turn, t), elements(f) * piece, piece});
  }

  // Sums the parts' shares for micro-batch m, [split][rows][hidden], and `onto` if given.
  Operand add_up(std::int64_t m, Operand shares, std::optional<Operand> onto) {
    const Operand out = layers_.output(rows_ * hidden_);
    const Operand sums = onto ? layers_.output(rows_ * hidden_) : out;
    for (std::int64_t half = 0; half < kHalves; ++half) {
      const Part part = part_of(rows_, kHalves, half);
      if (part.count == 0) continue;
      const Lane lane = lanes_[kTensorParallel][m * kHalves + half];
      const std::int64_t count = part.count * hidden_;
      const auto half_of = [&](Operand whole) { return slice(whole, part, hidden_); };
      layers_.sum(lane, {shares.buffer, elements(part.begin * hidden_)}, split_, count, rows_ * hidden_, 1,
                  half_of(sums));
      if (onto) layers_.add(lane, half_of(*onto), half_of(sums), count, 1, 1, half_of(out));
    }
    return out;
  }

  void forward(std::int64_t b, std::int64_t turn) {
    std::vector<Operand> middle, next;
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand x = states_[at(b)][at(m)], shares = layers_.output(split_ * rows_ * hidden_);
      for (std::int64_t t = 0; t < split_; ++t)
        part_.attend(lane(m, t), x, {gathered(turn, t)}, kept(b, m, t), share(shares, t));
      middle.push_back(add_up(m, shares, x));
    }
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand shares = layers_.output(split_ * rows_ * hidden_);
      for (std::int64_t t = 0; t < split_; ++t)
        part_.expand(lane(m, t), middle[at(m)], {gathered(turn, t)}, kept(b, m, t), share(shares, t));
      next.push_back(add_up(m, shares, middle[at(m)]));
    }
    middles_.push_back(std::move(middle));
    states_.push_back(std::move(next));
  }

  // Through the normalisation before attention or MLP, and past it along the residual.
  Operand join(std::int64_t m, Operand x, Operand dy, Operand shares) {
    const Lane on = lane(m, m % split_);
    const Operand dx = layers_.layer_norm_backward(on, x, add_up(m, shares, {}), rows_, hidden_);
    return layers_.add(on, dy, dx, rows_ * hidden_);
  }

  void backward(std::int64_t b, std::int64_t turn) {
    const auto replica = [&](std::int64_t m, std::int64_t t) {
      return TransformerPart::Flat{replicas_[at(b * split_ + t)], m * flat_};
    };
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand dy = gradient_[at(m)], shares = layers_.output(split_ * rows_ * hidden_);
      for (std::int64_t t = 0; t < split_; ++t)
        part_.expand_backward(lane(m, t), dy, {gathered(turn, t)}, kept(b, m, t), replica(m, t), share(shares, t));
      gradient_[at(m)] = join(m, middles_[at(b)][at(m)], dy, shares);
    }
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand dy = gradient_[at(m)], shares = layers_.output(split_ * rows_ * hidden_);
      for (std::int64_t t = 0; t < split_; ++t)
        part_.attend_backward(lane(m, t), dy, {gathered(turn, t)}, kept(b, m, t), replica(m, t), share(shares, t));
      gradient_[at(m)] = join(m, states_[at(b)][at(m)], dy, shares);
    }
  }

  // Sums the replicas' gradients of block b and leaves each rank its shards of the mean.
  void reduce_scatter(std::int64_t b) {
    const std::int64_t piece = flat_ / shards_, own = piece / ranks_;
    const float mean = 1 / static_cast<float>(batch_ * ranks_);
    for (std::int64_t t = 0; t < split_; ++t)
      for (std::int64_t f = 0; f < shards_; ++f) {
        const std::size_t i = at(b * split_ + t);
        const Lane lane = lanes_[kReduceScatter][t * shards_ + f];
        const Operand sum{reduced_[i], elements(f * piece), elements(piece)};
        layers_.sum(lane, {replicas_[i], elements(f * piece)}, batch_, piece, flat_, mean, sum);
        step_.collective(CollectiveOp::reduce_scatter, lane, sum, {result_[i], elements(f * own), elements(own)});
      }
  }

  std::int64_t blocks_, hidden_, split_, batch_, rows_, shards_, ranks_;
  TransformerPart part_;
  std::int64_t flat_ = 0;
  std::vector<BufferId> shard_, gathered_, replicas_, reduced_, result_;
  std::vector<std::vector<Operand>> states_, middles_;  // by block and micro-batch
  std::vector<Operand> target_, gradient_;              // by micro-batch
  std::vector<TransformerPart::Kept> kept_;
};

}  // namespace

Workload fsdp_tp() {
  return {.name = "fsdp_tp",
          .summary = "A sharded transformer's training step",
          .category = "distributed",
          .priority = 1,
          .unit = "samples/s",
          .scaling = Scaling::divided,
          .shows = "all-gather / reduce-scatter / tensor-parallel all-reduce beside compute",
          .streams = {1, 10, kMaxStreams},
          .params =
              {
                  integer_param("blocks", "transformer blocks", {2, 2, 4}, 1, 96),
                  integer_param("hidden", "width of a block", {16, 128, 2048}, 2, 32768),
                  integer_param("heads", "attention heads", {2, 4, 32}, 1, 256),
                  integer_param("batch", "micro-batches of one sequence each; more on more than 64 streams", {8, 8, 8},
                                1, 1024),
                  integer_param("sequence", "tokens of a sequence", {4, 32, 512}, 2, 32768),
                  integer_param("tensor_parallel", "parts that each block is split into", {2, 2, 2}, 1, 16),
                  integer_param("shards", "pieces that a gather or reduction is cut into; more on more than 64 streams",
                                {8, 8, 8}, 1, 64),
              },
          .roles = {"compute", "all_gather", "reduce_scatter", "tensor_parallel"},
          .build = build_model<ShardedTrainer>};
}

}  // namespace weir::workload_list
