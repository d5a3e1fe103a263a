// Activation checkpointing: forward keeps only the input of every few blocks; the backward streams wait for others to
// recompute the rest, one segment ahead.
#include <algorithm>

#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

// Parts that rows are cut into on up to 32 streams; beyond, each compute stream has one.
constexpr std::int64_t kMinChunks = 16;

// One block: y = x + W2 gelu(W1 norm(x)).
class Checkpointed : Model {
  enum Role : std::uint8_t { kCompute, kRecompute };

 public:
  Checkpointed(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1}),
        blocks_(params.integer("blocks")),
        every_(params.integer("every")),
        hidden_(params.integer("hidden")),
        samples_(params.integer("batch")),
        rows_(samples_ * params.integer("sequence")),
        chunk_count_(std::max<std::int64_t>(kMinChunks, lanes_[kCompute].count)) {
    require_multiple("blocks", blocks_, "every", every_);
    const std::int64_t sequence = params.integer("sequence");
    if (rows_ < kMinChunks)
      reject_param("batch", samples_,
                   fmt::format("with sequence={} that is {} rows; {} are needed", sequence, rows_, kMinChunks),
                   fmt::format("Use batch={} or sequence={}, or more.", (kMinChunks + sequence - 1) / sequence,
                               (kMinChunks + samples_ - 1) / samples_));
    // A chunk has at least one row.
    if (rows_ < chunk_count_) {
      samples_ = divided_up(chunk_count_, sequence);
      rows_ = samples_ * sequence;
    }
    for (std::int64_t b = 0; b < blocks_; ++b)
      weights_.push_back({layers_.weights(hidden_, inner()), layers_.weights(inner(), hidden_)});
  }

  Step build() {
    for (std::int64_t c = 0; c < chunk_count_; ++c) forward(c);
    const std::int64_t segments = blocks_ / every_;
    for (std::int64_t b = 0; b < blocks_; ++b) parts_.push_back(layers_.output(chunk_count_ * 2 * matrix()));
    for (std::int64_t c = 0; c < chunk_count_; ++c) recompute(c, segments - 1);
    for (std::int64_t s = segments - 1; s >= 0; --s) {
      // The next segment's recomputation is submitted first, so it runs during this segment's backward pass.
      for (std::int64_t c = 0; c < chunk_count_ && s > 0; ++c) recompute(c, s - 1);
      for (std::int64_t c = 0; c < chunk_count_; ++c) backward(c, s);
      for (std::int64_t b = s * every_; b < (s + 1) * every_; ++b) reduce(b);
    }
    return finish(samples_);
  }

 private:
  struct Weights {
    Operand up, down;
  };
  // The values of a block that backward needs.
  struct Activations {
    Operand x, normal, up, active;
  };
  struct Chunk {
    std::vector<Operand> checkpoints;   // input of each segment
    std::vector<Activations> slots[2];  // recomputed, by block of the segment; segments alternate
    Operand scratch_normal, scratch_up, scratch_active, gradient;
  };
  std::int64_t inner() const { return 4 * hidden_; }
  std::int64_t matrix() const { return hidden_ * inner(); }
  std::int64_t rows_of(std::int64_t c) const { return part_of(rows_, chunk_count_, c).count; }

  void forward(std::int64_t c) {
    const Lane lane = lanes_[kCompute][c];
    const std::int64_t rows = rows_of(c), h = hidden_;
    Chunk chunk;
    Operand x = samples(rows * h);
    // Values that are not kept share memory across blocks.
    chunk.scratch_normal = layers_.output(rows * h);
    chunk.scratch_up = layers_.output(rows * inner());
    chunk.scratch_active = layers_.output(rows * inner());
    const Operand down = layers_.output(rows * h), scratch_x = layers_.output(rows * h);
    for (std::int64_t b = 0; b < blocks_; ++b) {
      if (b % every_ == 0) chunk.checkpoints.push_back(x);
      layers_.layer_norm(lane, x, rows, h, chunk.scratch_normal);
      layers_.gemm(lane, chunk.scratch_normal, weights_[at(b)].up, {rows, inner(), h}, chunk.scratch_up);
      layers_.gelu(lane, chunk.scratch_up, rows * inner(), chunk.scratch_active);
      layers_.gemm(lane, chunk.scratch_active, weights_[at(b)].down, {rows, h, inner()}, down);
      const bool is_kept = (b + 1) % every_ == 0;
      x = layers_.add(lane, x, down, rows * h, 1, 1, is_kept ? layers_.output(rows * h) : scratch_x);
    }
    const Operand target = samples(rows * h);
    chunk.gradient = layers_.add(lane, x, target, rows * h, 1, -1);
    for (auto& slot : chunk.slots)
      for (std::int64_t i = 0; i < every_; ++i)
        slot.push_back({layers_.output(rows * h), layers_.output(rows * h), layers_.output(rows * inner()),
                        layers_.output(rows * inner())});
    chunks_.push_back(std::move(chunk));
  }

  // From the segment's checkpoint, into the slot that the segment after the next has released.
  void recompute(std::int64_t c, std::int64_t segment) {
    const Lane lane = lanes_[kRecompute][c];
    const std::int64_t rows = rows_of(c), h = hidden_;
    Chunk& chunk = chunks_[at(c)];
    for (std::int64_t i = 0; i < every_; ++i) {
      const Activations& slot = chunk.slots[segment % 2][at(i)];
      const Weights& weights = weights_[at(segment * every_ + i)];
      if (i == 0) step_.copy(lane, chunk.checkpoints[at(segment)], slot.x);
      layers_.layer_norm(lane, slot.x, rows, h, slot.normal);
      layers_.gemm(lane, slot.normal, weights.up, {rows, inner(), h}, slot.up);
      layers_.gelu(lane, slot.up, rows * inner(), slot.active);
      if (i + 1 == every_) continue;
      const Operand down = layers_.gemm(lane, slot.active, weights.down, {rows, h, inner()});
      layers_.add(lane, slot.x, down, rows * h, 1, 1, chunk.slots[segment % 2][at(i + 1)].x);
    }
  }

  void backward(std::int64_t c, std::int64_t segment) {
    const Lane lane = lanes_[kCompute][c];
    const std::int64_t rows = rows_of(c), h = hidden_;
    Chunk& chunk = chunks_[at(c)];
    for (std::int64_t i = every_ - 1; i >= 0; --i) {
      const std::int64_t b = segment * every_ + i;
      const Activations& kept = chunk.slots[segment % 2][at(i)];
      const Operand up_part = slice(parts_[at(b)], {2 * c, 1}, matrix());
      const Operand down_part = slice(parts_[at(b)], {2 * c + 1, 1}, matrix());
      const Operand d_active = layers_.gemm(lane, chunk.gradient, weights_[at(b)].down,
                                            {.m = rows, .n = inner(), .k = h, .transposes_b = true});
      const Operand d_up = layers_.gelu_backward(lane, kept.up, d_active, rows * inner());
      layers_.gemm(lane, kept.active, chunk.gradient, {.m = inner(), .n = h, .k = rows, .transposes_a = true},
                   down_part);
      layers_.gemm(lane, kept.normal, d_up, {.m = h, .n = inner(), .k = rows, .transposes_a = true}, up_part);
      const Operand d_normal =
          layers_.gemm(lane, d_up, weights_[at(b)].up, {.m = rows, .n = h, .k = inner(), .transposes_b = true});
      const Operand dx = layers_.layer_norm_backward(lane, kept.x, d_normal, rows, h);
      chunk.gradient = layers_.add(lane, chunk.gradient, dx, rows * h);
    }
  }

  // Sums the chunks' gradients of block b, also across ranks.
  void reduce(std::int64_t b) {
    for (std::int64_t i = 0; i < chunk_count_; ++i) {
      const Lane lane = lanes_[kCompute][i];
      const Part piece = part_of(2 * matrix(), chunk_count_, i);
      const Operand from{parts_[at(b)].buffer, elements(piece.begin)};
      const float mean = 1 / static_cast<float>(rows_ * step_.ranks().count);
      const Operand sum = layers_.sum(lane, from, chunk_count_, piece.count, 2 * matrix(), mean);
      if (step_.ranks().has_collectives())
        step_.collective(CollectiveOp::all_reduce, lane, sum, layers_.output(piece.count));
    }
  }

  std::int64_t blocks_, every_, hidden_, samples_, rows_, chunk_count_;
  std::vector<Weights> weights_;
  std::vector<Operand> parts_;  // by block: [chunks][both matrices]
  std::vector<Chunk> chunks_;
};

}  // namespace

Workload activation_ckpt() {
  return {.name = "activation_ckpt",
          .summary = "Backward on activations that other streams recompute",
          .category = "distributed",
          .priority = 2,
          .unit = "samples/s",
          .scaling = Scaling::divided,
          .shows = "recomputation feeding gradients from another stream",
          .streams = {1, 6, kMaxStreams},
          .params =
              {
                  integer_param("blocks", "blocks of normalisation, MLP and residual", {4, 4, 8}, 2, 256),
                  integer_param("every", "blocks from one checkpoint to the next", {2, 2, 2}, 1, 256),
                  integer_param("hidden", "width of a block; the MLP is four times as wide", {8, 64, 1024}, 1, 32768),
                  integer_param("batch", "samples; at least a token per compute stream", {4, 4, 4}, 1, 4096),
                  integer_param("sequence", "tokens of a sample", {8, 64, 512}, 1, 65536),
              },
          .roles = {"compute", "recompute"},
          .build = build_model<Checkpointed>};
}

}  // namespace weir::workload_list
