// A training step of a transformer in three dimensions: parameters sharded over replicas (FSDP), blocks split over
// tensor-parallel parts on streams and ranks, and stages of a pipeline (1F1B). Gathers, reductions, partial sums and
// hand-overs run on streams of their own, beside the compute that needs them.
#include <algorithm>
#include <cmath>

#include "step/workload/list.h"
#include "step/workload/model.h"
#include "step/workload/transformer.h"

namespace weir::workload_list {
namespace {

constexpr std::int64_t kHalves = 2;  // a partial sum is added up in two halves of its rows

// Where a rank is: tensor-parallel ranks are neighbours, then come the replicas, then the stages.
struct Layout {
  std::int64_t tensor = 1, stages = 1, replicas = 1;  // how many there are
  std::int64_t tensor_rank = 0, stage = 0, replica = 0;
  RankGroup tensor_group, replica_group;

  explicit Layout(const Params& params)
      : tensor(params.integer("tensor_parallel")), stages(params.integer("pipeline")) {
    const std::int64_t needed = tensor * stages, count = params.ranks.count, rank = params.ranks.rank;
    if (count % needed != 0)
      reject_param("tensor_parallel", tensor,
                   fmt::format("with pipeline={} it needs {} ranks or a multiple; there {} {}", stages, needed,
                               count == 1 ? "is" : "are", count),
                   fmt::format("Use --ranks {}. Parts on the streams of one rank are --param parts={}.", needed,
                               std::max<std::int64_t>(2, tensor)));
    replicas = count / needed;
    tensor_rank = rank % tensor;
    replica = rank / tensor % replicas;
    stage = rank / (tensor * replicas);
    if (needed == 1) return;  // all ranks are replicas
    tensor_group = {1, static_cast<int>(tensor)};
    replica_group = {static_cast<int>(tensor), static_cast<int>(replicas)};
  }
  bool is_last() const { return stage + 1 == stages; }
  // A stage and the next one, `lower` being the former.
  RankGroup pair(std::int64_t lower) const {
    return {static_cast<int>(tensor * replicas), 2, static_cast<int>(lower % 2)};
  }
};

class ShardedTrainer : Model {
  enum Role : std::uint8_t { kCompute, kAllGather, kReduceScatter, kTensorParallel, kPipeline };

 public:
  ShardedTrainer(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1, 1, 1}),
        layout_(params),
        all_blocks_(params.integer("blocks")),
        blocks_(part_of(all_blocks_, layout_.stages, layout_.stage)),
        hidden_(params.integer("hidden")),
        parts_(params.integer("parts")),
        all_parts_(parts_ * layout_.tensor),
        // Every stream has a part of some micro-batch, and a piece of some gather and reduction.
        batch_(std::max(params.integer("batch"), divided_up(lanes_[kCompute].count, std::min(parts_, kHalves)))),
        rows_(params.integer("sequence")),
        shards_(std::max(params.integer("shards"), divided_up(lanes_[kCompute].count, parts_))),
        part_(layers_, rows_, hidden_, hidden_ / all_parts_, params.integer("heads") / all_parts_) {
    require_multiple("hidden", hidden_, "heads", params.integer("heads"));
    require_multiple("heads", params.integer("heads"), "parts x tensor_parallel", all_parts_);
    if (all_blocks_ < layout_.stages)
      reject_param("pipeline", layout_.stages, fmt::format("there are {} blocks", all_blocks_),
                   "A stage has at least one.");
    // One flat parameter per block and part, like FSDP, padded so that all shards have the same length.
    flat_ = divided_up(used(), shards_ * layout_.replicas) * shards_ * layout_.replicas;
    // Gathers come first in a pipeline, so hand-overs have their streams.
    lanes_.push_back(lanes_[kAllGather]);
    lanes_[kPipeline].role = kPipeline;
  }

  Step build() {
    allocate();
    if (layout_.stages == 1) {
      build_block_by_block();
    } else {
      build_pipeline();
    }
    // What the ranks of one replica do together counts once.
    step_.work(static_cast<double>(batch_) / static_cast<double>(layout_.tensor * layout_.stages));
    return finish();
  }

 private:
  Lane lane(std::int64_t m, std::int64_t t) const { return lanes_[kCompute][m * parts_ + t]; }
  // Elements of a block's part, without padding.
  std::int64_t used() const { return TransformerPart::flat_count(hidden_, hidden_ / all_parts_); }
  std::int64_t own_piece() const { return flat_ / shards_ / layout_.replicas; }
  // Gathered parameters of part t. A pipeline keeps those of all its blocks; otherwise two slots alternate.
  std::int64_t slot_count() const { return layout_.stages == 1 ? 2 : blocks_.count; }
  BufferId gathered(std::int64_t turn, std::int64_t t) const { return gathered_[at(turn % slot_count() * parts_ + t)]; }
  TransformerPart::Kept& kept(std::int64_t b, std::int64_t m, std::int64_t t) {
    return kept_[at((b * batch_ + m) * parts_ + t)];
  }
  Operand share(Operand all, std::int64_t t) const { return slice(all, {t, 1}, rows_ * hidden_); }
  std::int64_t activations() const { return rows_ * hidden_; }

  void build_block_by_block() {
    const Part all{0, batch_};
    const std::int64_t blocks = blocks_.count;
    gather(0, 0);
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (b + 1 < blocks) gather(b + 1, b + 1);  // one block ahead; its slot is free once block b - 1 has ended
      forward(b, b, all);
    }
    for (std::int64_t m = 0; m < batch_; ++m) begin_backward(m);
    // Backward gathers again what forward released; the last block is still there.
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t b = blocks - 1 - i, turn = blocks - 1 + i;
      if (b > 0) gather(b - 1, turn + 1);
      backward(b, turn, all);
      reduce_scatter(b);
    }
  }

  // 1F1B: stage p is given its m-th forward in slot p + 2 m and its m-th backward in slot 2 stages - 1 - p + 2 m. So it
  // has at most stages - p micro-batches in flight, and after each slot it hands over to one neighbour only.
  std::optional<std::int64_t> micro_batch(std::int64_t slot, std::int64_t first) const {
    if (slot < first || (slot - first) % 2 != 0 || (slot - first) / 2 >= batch_) return std::nullopt;
    return (slot - first) / 2;
  }
  std::optional<std::int64_t> forward_in(std::int64_t slot, std::int64_t stage) const {
    return micro_batch(slot, stage);
  }
  std::optional<std::int64_t> backward_in(std::int64_t slot, std::int64_t stage) const {
    return micro_batch(slot, 2 * layout_.stages - 1 - stage);
  }

  void build_pipeline() {
    for (std::int64_t b = 0; b < blocks_.count; ++b) gather(b, b);
    for (std::int64_t slot = 0; slot < 2 * (batch_ + layout_.stages - 1); ++slot) {
      if (const auto m = forward_in(slot, layout_.stage)) {
        for (std::int64_t b = 0; b < blocks_.count; ++b) forward(b, b, {*m, 1});
        if (layout_.is_last()) begin_backward(*m);
      }
      if (const auto m = backward_in(slot, layout_.stage)) {
        for (std::int64_t b = blocks_.count - 1; b >= 0; --b) {
          backward(b, b, {*m, 1});
          if (*m + 1 == batch_) reduce_scatter(b);
        }
      }
      hand_over(slot);
    }
  }

  // What this slot has made goes to the next stage (activations) or to the one before (gradients), in one exchange of
  // the two. Where only one of them has something to send, the other sends zeros.
  void hand_over(std::int64_t slot) {
    const bool is_lower = (slot + layout_.stage) % 2 == 0;
    const std::int64_t lower = is_lower ? layout_.stage : layout_.stage - 1;
    if (lower < 0 || lower + 1 >= layout_.stages) return;
    const auto up = forward_in(slot, lower), down = backward_in(slot, lower + 1);
    if (!up && !down) return;
    const auto& mine = is_lower ? up : down;
    const auto& theirs = is_lower ? down : up;
    const Operand received = layers_.output(activations());
    Operand sent{zeros_};
    if (mine) sent = is_lower ? states_.back()[at(*mine)] : gradient_[at(*mine)];
    step_.collective(CollectiveOp::shift, lanes_[kPipeline][slot], sent, received, layout_.pair(lower));
    if (theirs) (is_lower ? gradient_ : states_.front())[at(*theirs)] = received;
  }

  void allocate() {
    const ElementType type = layers_.type();
    const float scale = std::sqrt(3.0f / static_cast<float>(hidden_));
    // All random values are parts of one sequence, so that any layout of ranks begins with the same model and samples.
    for (std::int64_t b = 0; b < blocks_.count; ++b)
      for (std::int64_t t = 0; t < parts_; ++t) {
        const std::int64_t part = (blocks_.begin + b) * all_parts_ + layout_.tensor_rank * parts_ + t;
        const Slice own{elements(part * used() + layout_.replica * own_piece()), elements(own_piece()),
                        elements(flat_ / shards_)};
        const std::uint64_t count = elements(flat_ / layout_.replicas);
        shard_.push_back(shard_.empty() ? step_.slice(type, count, own, scale)
                                        : step_.slice_of(shard_[0], count, own, scale));
      }
    for (std::int64_t i = 0; i < blocks_.count * parts_; ++i) {
      // Each micro-batch is a replica with a gradient of its own; the padding of the flat parameter stays 0.
      replicas_.push_back(step_.constant(type, elements(batch_ * flat_), 0));
      reduced_.push_back(step_.output(type, elements(flat_)));
      result_.push_back(step_.output(type, elements(flat_ / layout_.replicas)));
    }
    for (std::int64_t i = 0; i < slot_count() * parts_; ++i) gathered_.push_back(step_.output(type, elements(flat_)));
    states_.assign(at(blocks_.count + 1), std::vector<Operand>(at(batch_)));
    middles_.assign(at(blocks_.count), std::vector<Operand>(at(batch_)));
    gradient_.resize(at(batch_));
    // After the parameters come the samples of all replicas, and then their targets.
    const auto sample = [&](std::int64_t m, bool is_target) {
      const std::int64_t samples = layout_.replicas * batch_;
      const std::int64_t index = (is_target ? samples : 0) + layout_.replica * batch_ + m;
      const Slice own{elements(all_blocks_ * all_parts_ * used() + index * activations())};
      return Operand{step_.slice_of(shard_[0], elements(activations()), own)};
    };
    for (std::int64_t m = 0; m < batch_; ++m) {
      if (layout_.stage == 0) states_[0][at(m)] = sample(m, false);
      if (layout_.is_last()) target_.push_back(sample(m, true));
    }
    if (layout_.stages > 1) zeros_ = step_.constant(type, elements(activations()), 0);
    kept_.resize(at(blocks_.count * batch_ * parts_));
  }

  // Gathers block b's parameters, in pieces over the streams.
  void gather(std::int64_t b, std::int64_t turn) {
    const std::uint64_t piece = elements(flat_ / shards_), own = elements(own_piece());
    for (std::int64_t t = 0; t < parts_; ++t)
      for (std::int64_t f = 0; f < shards_; ++f)
        step_.collective(CollectiveOp::all_gather, lanes_[kAllGather][t * shards_ + f],
                         {shard_[at(b * parts_ + t)], elements(f) * own, own},
                         {gathered(turn, t), elements(f) * piece, piece}, layout_.replica_group);
  }

  // Sums the parts' shares for micro-batch m, [parts][rows][hidden], those of other ranks, and `onto` if given.
  Operand add_up(std::int64_t m, Operand shares, std::optional<Operand> onto) {
    const Operand out = layers_.output(activations());
    const Operand sums = onto ? layers_.output(activations()) : out;
    const Operand own = layout_.tensor > 1 ? layers_.output(activations()) : sums;
    for (std::int64_t half = 0; half < kHalves; ++half) {
      const Part part = part_of(rows_, kHalves, half);
      if (part.count == 0) continue;
      const Lane lane = lanes_[kTensorParallel][m * kHalves + half];
      const std::int64_t count = part.count * hidden_;
      const auto half_of = [&](Operand whole) { return slice(whole, part, hidden_); };
      layers_.sum(lane, {shares.buffer, elements(part.begin * hidden_)}, parts_, count, activations(), 1, half_of(own));
      if (layout_.tensor > 1)
        step_.collective(CollectiveOp::all_reduce, lane, half_of(own), half_of(sums), layout_.tensor_group);
      if (onto) layers_.add(lane, half_of(*onto), half_of(sums), count, 1, 1, half_of(out));
    }
    return out;
  }

  // Block b of this stage, for some of the micro-batches.
  void forward(std::int64_t b, std::int64_t turn, Part micro_batches) {
    const auto each = [&](const auto& body) {
      for (std::int64_t i = 0; i < micro_batches.count; ++i) body(micro_batches.begin + i);
    };
    each([&](std::int64_t m) {
      const Operand x = states_[at(b)][at(m)], shares = layers_.output(parts_ * activations());
      for (std::int64_t t = 0; t < parts_; ++t)
        part_.attend(lane(m, t), x, {gathered(turn, t)}, kept(b, m, t), share(shares, t));
      middles_[at(b)][at(m)] = add_up(m, shares, x);
    });
    each([&](std::int64_t m) {
      const Operand middle = middles_[at(b)][at(m)], shares = layers_.output(parts_ * activations());
      for (std::int64_t t = 0; t < parts_; ++t)
        part_.expand(lane(m, t), middle, {gathered(turn, t)}, kept(b, m, t), share(shares, t));
      states_[at(b + 1)][at(m)] = add_up(m, shares, middle);
    });
  }

  // The gradient of half the squared distance to the target.
  void begin_backward(std::int64_t m) {
    gradient_[at(m)] = layers_.add(lane(m, 0), states_.back()[at(m)], target_[at(m)], activations(), 1, -1);
  }

  // Through the normalisation before attention or MLP, and past it along the residual.
  Operand join(std::int64_t m, Operand x, Operand dy, Operand shares) {
    const Lane on = lane(m, m % parts_);
    const Operand dx = layers_.layer_norm_backward(on, x, add_up(m, shares, {}), rows_, hidden_);
    return layers_.add(on, dy, dx, activations());
  }

  void backward(std::int64_t b, std::int64_t turn, Part micro_batches) {
    const auto replica = [&](std::int64_t m, std::int64_t t) {
      return TransformerPart::Flat{replicas_[at(b * parts_ + t)], m * flat_};
    };
    const std::int64_t end = micro_batches.begin + micro_batches.count;
    for (std::int64_t m = micro_batches.begin; m < end; ++m) {
      const Operand dy = gradient_[at(m)], shares = layers_.output(parts_ * activations());
      for (std::int64_t t = 0; t < parts_; ++t)
        part_.expand_backward(lane(m, t), dy, {gathered(turn, t)}, kept(b, m, t), replica(m, t), share(shares, t));
      gradient_[at(m)] = join(m, middles_[at(b)][at(m)], dy, shares);
    }
    for (std::int64_t m = micro_batches.begin; m < end; ++m) {
      const Operand dy = gradient_[at(m)], shares = layers_.output(parts_ * activations());
      for (std::int64_t t = 0; t < parts_; ++t)
        part_.attend_backward(lane(m, t), dy, {gathered(turn, t)}, kept(b, m, t), replica(m, t), share(shares, t));
      gradient_[at(m)] = join(m, states_[at(b)][at(m)], dy, shares);
    }
  }

  // Sums the replicas' gradients of block b and leaves each rank its shards of the mean.
  void reduce_scatter(std::int64_t b) {
    const std::int64_t piece = flat_ / shards_, own = own_piece();
    const float mean = 1 / static_cast<float>(batch_ * layout_.replicas);
    for (std::int64_t t = 0; t < parts_; ++t)
      for (std::int64_t f = 0; f < shards_; ++f) {
        const std::size_t i = at(b * parts_ + t);
        const Lane lane = lanes_[kReduceScatter][t * shards_ + f];
        const Operand sum{reduced_[i], elements(f * piece), elements(piece)};
        layers_.sum(lane, {replicas_[i], elements(f * piece)}, batch_, piece, flat_, mean, sum);
        step_.collective(CollectiveOp::reduce_scatter, lane, sum, {result_[i], elements(f * own), elements(own)},
                         layout_.replica_group);
      }
  }

  Layout layout_;
  std::int64_t all_blocks_;
  Part blocks_;  // of this stage
  std::int64_t hidden_, parts_, all_parts_, batch_, rows_, shards_;
  TransformerPart part_;
  std::int64_t flat_ = 0;
  std::vector<BufferId> shard_, gathered_, replicas_, reduced_, result_;
  std::vector<std::vector<Operand>> states_, middles_;  // by block and micro-batch
  std::vector<Operand> target_, gradient_;              // by micro-batch
  BufferId zeros_ = 0;
  std::vector<TransformerPart::Kept> kept_;
};

}  // namespace

Workload fsdp_tp() {
  return {.name = "fsdp_tp",
          .summary = "A sharded transformer's training step, also tensor-parallel and pipelined over ranks",
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
                  integer_param("heads", "attention heads", {4, 4, 32}, 1, 256),
                  integer_param("batch", "micro-batches of one sequence each; more on more than 64 streams", {8, 8, 8},
                                1, 1024),
                  integer_param("sequence", "tokens of a sequence", {4, 32, 512}, 2, 32768),
                  integer_param("parts", "tensor-parallel parts of a block on each rank's streams", {2, 2, 2}, 1, 16),
                  integer_param("tensor_parallel", "ranks that share every block", {1, 1, 1}, 1, 1024),
                  integer_param("pipeline", "stages of blocks, each on ranks of its own", {1, 1, 1}, 1, 1024),
                  integer_param("shards", "pieces that a gather or reduction is cut into; more on more than 64 streams",
                                {8, 8, 8}, 1, 64),
              },
          .roles = {"compute", "all_gather", "reduce_scatter", "tensor_parallel", "pipeline"},
          .build = build_model<ShardedTrainer>};
}

}  // namespace weir::workload_list
