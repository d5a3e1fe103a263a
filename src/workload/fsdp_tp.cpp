// A training step of a transformer, parameters sharded (FSDP) and blocks split over two tensor-parallel halves:
// gathers, reductions and partial sums on streams of their own, beside the compute that needs them.
#include <cmath>

#include "workload/layers.h"
#include "workload/list.h"

namespace weir::workload_list {
namespace {

enum Role : std::uint8_t { kCompute, kAllGather, kReduceScatter, kTensorParallel };

constexpr std::int64_t kHalves = 2;  // a partial sum is added up in two halves of its rows

class Trainer {
 public:
  Trainer(const Params& params, int stream_count)
      : step_(params.seed, params.ranks),
        layers_(step_, params.precision),
        blocks_(params.integer("blocks")),
        hidden_(params.integer("hidden")),
        heads_(params.integer("heads")),
        batch_(params.integer("batch")),
        sequence_(params.integer("sequence")),
        split_(params.integer("tensor_parallel")),
        shards_(params.integer("shards")),
        ranks_(params.ranks.count),
        lanes_(divide_streams(stream_count, {1, 1, 1, 1})) {
    require_multiple("hidden", hidden_, "heads", heads_);
    require_multiple("heads", heads_, "tensor_parallel", split_);
    width_ = hidden_ / split_;
    // One flat parameter per block and half, as FSDP has it, padded so that every shard is as long.
    offset_of_[kQkv] = 0;
    offset_of_[kOut] = hidden_ * 3 * width_;
    offset_of_[kUp] = offset_of_[kOut] + width_ * hidden_;
    offset_of_[kDown] = offset_of_[kUp] + hidden_ * 4 * width_;
    const std::int64_t used = offset_of_[kDown] + 4 * width_ * hidden_;
    const std::int64_t pieces = shards_ * ranks_;
    flat_ = (used + pieces - 1) / pieces * pieces;
  }

  Step build(int stream_count) {
    allocate();
    gather(0, 0);
    for (std::int64_t b = 0; b < blocks_; ++b) {
      if (b + 1 < blocks_) gather(b + 1, b + 1);  // one block ahead; its slot is free when block b - 1 has ended
      forward(b, b);
    }
    for (std::int64_t m = 0; m < batch_; ++m)
      gradient_.push_back(layers_.add(lane(m, 0), states_.back()[at(m)], {target_[at(m)]}, rows() * hidden_, 1, -1));
    // Backward gathers again what forward let go; the last block is still there.
    for (std::int64_t i = 0; i < blocks_; ++i) {
      const std::int64_t b = blocks_ - 1 - i, turn = blocks_ - 1 + i;
      if (b > 0) gather(b - 1, turn + 1);
      backward(b, turn);
      reduce_scatter(b);
    }
    step_.work(static_cast<double>(batch_));
    return std::move(step_).seal(stream_count);
  }

 private:
  enum Matrix { kQkv, kOut, kUp, kDown };
  // What a micro-batch's half keeps of a block for its backward pass.
  struct Kept {
    Operand normal1, heads, scores, seen, normal2, up, active;
  };
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int64_t rows() const { return sequence_; }
  std::int64_t unit(std::int64_t m, std::int64_t t) const { return m * split_ + t; }
  Lane lane(std::int64_t m, std::int64_t t) const { return lanes_[kCompute][unit(m, t)]; }
  std::int64_t head_dim() const { return hidden_ / heads_; }
  std::int64_t half_heads() const { return heads_ / split_; }

  void allocate() {
    const ElementType type = layers_.type();
    const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    // Shard f of a rank: what it contributes to piece f of the flat parameter.
    const float scale = std::sqrt(3.0f / static_cast<float>(hidden_));
    for (std::int64_t i = 0; i < blocks_ * split_; ++i)
      shard_.push_back(step_.sharded(type, count(flat_ / ranks_), scale));
    for (std::int64_t i = 0; i < 2 * split_; ++i) gathered_.push_back(step_.output(type, count(flat_)));
    for (std::int64_t b = 0; b < blocks_; ++b)
      for (std::int64_t t = 0; t < split_; ++t) {
        // Each micro-batch is a replica with a gradient of its own; what pads the flat parameter stays 0.
        parts_of_.push_back(step_.constant(type, count(batch_ * flat_), 0));
        reduced_.push_back(step_.output(type, count(flat_)));
        result_.push_back(step_.output(type, count(flat_ / ranks_)));
      }
    states_.resize(1);
    for (std::int64_t m = 0; m < batch_; ++m) {
      states_[0].push_back({step_.sharded(type, count(rows() * hidden_))});
      target_.push_back(step_.sharded(type, count(rows() * hidden_)));
    }
    kept_.resize(at(blocks_ * batch_ * split_));
  }

  // Brings block b's parameters together, in pieces over the streams; gathers take turns in two slots.
  void gather(std::int64_t b, std::int64_t turn) {
    const auto piece = static_cast<std::uint64_t>(flat_ / shards_), own = piece / static_cast<std::uint64_t>(ranks_);
    for (std::int64_t t = 0; t < split_; ++t)
      for (std::int64_t f = 0; f < shards_; ++f) {
        const auto index = static_cast<std::uint64_t>(f);
        step_.collective(CollectiveOp::all_gather, lanes_[kAllGather][t * shards_ + f],
                         {shard_[at(b * split_ + t)], index * own, own},
                         {gathered_[at(turn % 2 * split_ + t)], index * piece, piece});
      }
  }

  // Adds up the halves' parts of micro-batch m, [split][rows][hidden], and `onto` where given.
  Operand tensor_parallel(std::int64_t m, Operand parts, std::optional<Operand> onto) {
    const Operand out = layers_.output(rows() * hidden_);
    const Operand sums = onto ? layers_.output(rows() * hidden_) : out;
    for (std::int64_t half = 0; half < kHalves; ++half) {
      const Part part = part_of(rows(), kHalves, half);
      if (part.count == 0) continue;
      const Lane lane = lanes_[kTensorParallel][m * kHalves + half];
      const auto begin = static_cast<std::uint64_t>(part.begin * hidden_);
      const std::int64_t count = part.count * hidden_;
      const auto slice = [&](Operand whole) { return Operand{whole.buffer, begin, static_cast<std::uint64_t>(count)}; };
      layers_.sum(lane, {parts.buffer, begin}, split_, count, rows() * hidden_, 1, slice(sums));
      if (onto) layers_.add(lane, slice(*onto), slice(sums), count, 1, 1, slice(out));
    }
    return out;
  }

  Operand parameter(std::int64_t turn, std::int64_t t, Matrix matrix, std::int64_t count) const {
    return {gathered_[at(turn % 2 * split_ + t)], static_cast<std::uint64_t>(offset_of_[matrix]),
            static_cast<std::uint64_t>(count)};
  }
  Operand half_of(Operand parts, std::int64_t t) const {
    const auto count = static_cast<std::uint64_t>(rows() * hidden_);
    return {parts.buffer, static_cast<std::uint64_t>(t) * count, count};
  }
  Kept& kept(std::int64_t b, std::int64_t m, std::int64_t t) { return kept_[at((b * batch_ + m) * split_ + t)]; }
  // q, k or v of all heads: [half_heads][rows][head_dim]
  Operand third(Operand heads, std::int64_t index) const {
    const auto count = static_cast<std::uint64_t>(rows() * width_);
    return {heads.buffer, static_cast<std::uint64_t>(index) * count, count};
  }

  void forward(std::int64_t b, std::int64_t turn) {
    const std::int64_t s = rows(), h = hidden_, w = width_, d = head_dim(), n = half_heads();
    const float scale = 1 / std::sqrt(static_cast<float>(d));
    std::vector<Operand> middle;
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand parts = layers_.output(split_ * s * h);
      for (std::int64_t t = 0; t < split_; ++t) {
        Kept& keep = kept(b, m, t);
        const Lane on = lane(m, t);
        keep.normal1 = layers_.layer_norm(on, states_[at(b)][at(m)], s, h);
        const Operand qkv = layers_.gemm(on, keep.normal1, parameter(turn, t, kQkv, h * 3 * w), {s, 3 * w, h});
        keep.heads = layers_.transpose(on, qkv, s, 3 * n, d);
        const Product scores{.m = s, .n = s, .k = d, .transposes_b = true, .alpha = scale, .batch = n};
        const Operand raw = layers_.gemm(on, third(keep.heads, 0), third(keep.heads, 1), scores);
        keep.scores = layers_.softmax(on, raw, n * s, s, true);
        const Operand mixed = layers_.gemm(on, keep.scores, third(keep.heads, 2), {.m = s, .n = d, .k = s, .batch = n});
        keep.seen = layers_.transpose(on, mixed, n, s, d);
        layers_.gemm(on, keep.seen, parameter(turn, t, kOut, w * h), {s, h, w}, half_of(parts, t));
      }
      middle.push_back(tensor_parallel(m, parts, states_[at(b)][at(m)]));
    }
    std::vector<Operand> next;
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand parts = layers_.output(split_ * s * h);
      for (std::int64_t t = 0; t < split_; ++t) {
        Kept& keep = kept(b, m, t);
        const Lane on = lane(m, t);
        keep.normal2 = layers_.layer_norm(on, middle[at(m)], s, h);
        keep.up = layers_.gemm(on, keep.normal2, parameter(turn, t, kUp, h * 4 * w), {s, 4 * w, h});
        keep.active = layers_.gelu(on, keep.up, s * 4 * w);
        layers_.gemm(on, keep.active, parameter(turn, t, kDown, 4 * w * h), {s, h, 4 * w}, half_of(parts, t));
      }
      next.push_back(tensor_parallel(m, parts, middle[at(m)]));
    }
    middles_.push_back(std::move(middle));
    states_.push_back(std::move(next));
  }

  // The gradient of one matrix, into its micro-batch's part.
  void weight_gradient(std::int64_t b, std::int64_t m, std::int64_t t, Matrix matrix, Operand input, Operand dy,
                       std::int64_t in, std::int64_t out) {
    const Operand to{parts_of_[at(b * split_ + t)], static_cast<std::uint64_t>(m * flat_ + offset_of_[matrix]),
                     static_cast<std::uint64_t>(in * out)};
    layers_.gemm(lane(m, t), input, dy, {.m = in, .n = out, .k = rows(), .transposes_a = true}, to);
  }

  void backward(std::int64_t b, std::int64_t turn) {
    const std::int64_t s = rows(), h = hidden_, w = width_, d = head_dim(), n = half_heads();
    const float scale = 1 / std::sqrt(static_cast<float>(d));
    std::vector<Operand> middle_gradient;
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand dy = gradient_[at(m)], parts = layers_.output(split_ * s * h);
      for (std::int64_t t = 0; t < split_; ++t) {
        Kept& keep = kept(b, m, t);
        const Lane on = lane(m, t);
        const Operand d_active = layers_.gemm(on, dy, parameter(turn, t, kDown, 4 * w * h),
                                              {.m = s, .n = 4 * w, .k = h, .transposes_b = true});
        const Operand d_up = layers_.gelu_backward(on, keep.up, d_active, s * 4 * w);
        weight_gradient(b, m, t, kDown, keep.active, dy, 4 * w, h);
        weight_gradient(b, m, t, kUp, keep.normal2, d_up, h, 4 * w);
        layers_.gemm(on, d_up, parameter(turn, t, kUp, h * 4 * w), {.m = s, .n = h, .k = 4 * w, .transposes_b = true},
                     half_of(parts, t));
      }
      const Operand d_normal = tensor_parallel(m, parts, {});
      const Lane on = lane(m, m % split_);
      const Operand dx = layers_.layer_norm_backward(on, middles_[at(b)][at(m)], d_normal, s, h);
      middle_gradient.push_back(layers_.add(on, dy, dx, s * h));
    }
    for (std::int64_t m = 0; m < batch_; ++m) {
      const Operand dy = middle_gradient[at(m)], parts = layers_.output(split_ * s * h);
      for (std::int64_t t = 0; t < split_; ++t) {
        Kept& keep = kept(b, m, t);
        const Lane on = lane(m, t);
        const Operand d_seen =
            layers_.gemm(on, dy, parameter(turn, t, kOut, w * h), {.m = s, .n = w, .k = h, .transposes_b = true});
        weight_gradient(b, m, t, kOut, keep.seen, dy, w, h);
        const Operand d_mixed = layers_.transpose(on, d_seen, s, n, d);
        const Operand d_scores =
            layers_.gemm(on, d_mixed, third(keep.heads, 2), {.m = s, .n = s, .k = d, .transposes_b = true, .batch = n});
        const Operand d_raw = layers_.softmax_backward(on, keep.scores, d_scores, n * s, s);
        const Operand d_heads = layers_.output(3 * s * w);
        layers_.gemm(on, d_raw, third(keep.heads, 1), {.m = s, .n = d, .k = s, .alpha = scale, .batch = n},
                     third(d_heads, 0));
        layers_.gemm(on, d_raw, third(keep.heads, 0),
                     {.m = s, .n = d, .k = s, .transposes_a = true, .alpha = scale, .batch = n}, third(d_heads, 1));
        layers_.gemm(on, keep.scores, d_mixed, {.m = s, .n = d, .k = s, .transposes_a = true, .batch = n},
                     third(d_heads, 2));
        const Operand d_qkv = layers_.transpose(on, d_heads, 3 * n, s, d);
        weight_gradient(b, m, t, kQkv, keep.normal1, d_qkv, h, 3 * w);
        layers_.gemm(on, d_qkv, parameter(turn, t, kQkv, h * 3 * w), {.m = s, .n = h, .k = 3 * w, .transposes_b = true},
                     half_of(parts, t));
      }
      const Operand d_normal = tensor_parallel(m, parts, {});
      const Lane on = lane(m, m % split_);
      const Operand dx = layers_.layer_norm_backward(on, states_[at(b)][at(m)], d_normal, s, h);
      gradient_[at(m)] = layers_.add(on, dy, dx, s * h);
    }
  }

  // Adds up the replicas' gradients of block b and leaves each rank its shards.
  void reduce_scatter(std::int64_t b) {
    const std::int64_t piece = flat_ / shards_, own = piece / ranks_;
    for (std::int64_t t = 0; t < split_; ++t)
      for (std::int64_t f = 0; f < shards_; ++f) {
        const std::size_t i = at(b * split_ + t);
        const Lane lane = lanes_[kReduceScatter][t * shards_ + f];
        const auto begin = static_cast<std::uint64_t>(f * piece), count = static_cast<std::uint64_t>(piece);
        const Operand all{parts_of_[i], begin}, sum{reduced_[i], begin, count};
        const Operand shard{result_[i], static_cast<std::uint64_t>(f * own), static_cast<std::uint64_t>(own)};
        const float mean = 1 / static_cast<float>(batch_ * ranks_);
        layers_.sum(lane, all, batch_, piece, flat_, mean, sum);
        step_.collective(CollectiveOp::reduce_scatter, lane, sum, shard);
      }
  }

  StepBuilder step_;
  Layers layers_;
  std::int64_t blocks_, hidden_, heads_, batch_, sequence_, split_, shards_, ranks_;
  std::vector<Lanes> lanes_;
  std::int64_t width_ = 0, flat_ = 0;
  std::int64_t offset_of_[4] = {};
  std::vector<BufferId> shard_, gathered_, parts_of_, reduced_, result_, target_;
  std::vector<std::vector<Operand>> states_, middles_;  // by block and micro-batch
  std::vector<Operand> gradient_;                       // by micro-batch
  std::vector<Kept> kept_;
};

}  // namespace

Workload fsdp_tp() {
  Workload workload;
  workload.name = "fsdp_tp";
  workload.summary = "A sharded transformer's training step";
  workload.category = "distributed";
  workload.priority = 1;
  workload.unit = "samples/s";
  workload.scaling = Scaling::divided;
  workload.shows = "all-gather / reduce-scatter / tensor-parallel all-reduce beside compute";
  workload.streams = {4, 10, 64};
  workload.params = {
      integer_param("blocks", "transformer blocks", {2, 2, 4}, 1, 96),
      integer_param("hidden", "width of a block", {16, 128, 2048}, 2, 32768),
      integer_param("heads", "attention heads", {2, 4, 32}, 1, 256),
      integer_param("batch", "micro-batches of one sequence each; 8 feed 64 streams", {8, 8, 8}, 1, 1024),
      integer_param("sequence", "tokens of a sequence", {4, 32, 512}, 2, 32768),
      integer_param("tensor_parallel", "parts that each block is split into", {2, 2, 2}, 1, 16),
      integer_param("shards", "pieces that a gather or reduction is cut into; 8 feed 64 streams", {8, 8, 8}, 1, 64),
  };
  workload.roles = {"compute", "all_gather", "reduce_scatter", "tensor_parallel"};
  workload.build = [](const Params& params, int stream_count) {
    return Trainer(params, stream_count).build(stream_count);
  };
  return workload;
}

}  // namespace weir::workload_list
