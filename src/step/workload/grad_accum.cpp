// Gradient accumulation: micro-batches add to one gradient, and a layer's gradient is reduced as soon as the last
// micro-batch has passed it, while backward continues below.
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

// Gradients that are accumulated separately and then summed, and pieces that the sum is cut into, on up to 32 streams;
// twice and four times as many on up to 64 and 128.
constexpr std::int64_t kMinShards = 16;

class Accumulated : Model {
  enum Role : std::uint8_t { kCompute, kReduce };

 public:
  Accumulated(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1}),
        micro_batches_(params.integer("micro_batches")),
        batch_(params.integer("batch")),
        shards_(shards_for(kMinShards, lanes_[kCompute])) {
    require_multiple_of("batch", batch_, "gradient shards", kMinShards);
    batch_ = divided_up(batch_, shards_) * shards_;
    const std::int64_t widths[] = {params.integer("inputs"), params.integer("hidden"), params.integer("hidden"),
                                   params.integer("outputs")};
    for (int l = 0; l < 3; ++l) {
      const std::int64_t in = widths[l], out = widths[l + 1];
      stack_.push_back({in, out, layers_.weights(in, out), layers_.output(shards_ * in * out)});
    }
    shares_ = shares_of(lanes_[kCompute], shards_, shard_rows());
  }

  Step build() {
    for (std::int64_t micro = 0; micro < micro_batches_; ++micro) {
      const std::vector<Pass> passes = forward();
      backward(passes, micro);
    }
    return finish(micro_batches_ * batch_);
  }

 private:
  struct Layer {
    std::int64_t in, out;
    Operand weights, gradients;  // [in][out], [shards][in][out]
    std::int64_t size() const { return in * out; }
  };
  // A micro-batch's pass through a layer: the input, and the product before its activation.
  struct Pass {
    Operand x, product;
  };
  std::int64_t shard_rows() const { return batch_ / shards_; }

  std::vector<Pass> forward() {
    std::vector<Pass> passes;
    Operand x = samples(batch_ * stack_[0].in);
    for (const auto& [in, out, weights, gradients] : stack_) {
      const Operand product = layers_.output(batch_ * out);
      for (const auto& [lane, shards, rows] : shares_)
        layers_.gemm(lane, slice(x, rows, in), weights, {rows.count, out, in}, slice(product, rows, out));
      passes.push_back({x, product});
      if (passes.size() == stack_.size()) break;
      x = layers_.output(batch_ * out);
      for (const auto& [lane, shards, rows] : shares_)
        layers_.gelu(lane, slice(product, rows, out), rows.count * out, slice(x, rows, out));
    }
    return passes;
  }

  void backward(const std::vector<Pass>& passes, std::int64_t micro) {
    const std::int64_t outputs = stack_.back().out;
    const Operand target = samples(batch_ * outputs);
    Operand dy = layers_.output(batch_ * outputs);
    for (const auto& [lane, shards, rows] : shares_)
      layers_.add(lane, slice(passes.back().product, rows, outputs), slice(target, rows, outputs), rows.count * outputs,
                  1, -1, slice(dy, rows, outputs));
    for (std::size_t l = stack_.size(); l-- > 0;) {
      const auto& [in, out, weights, gradients] = stack_[l];
      for (const auto& [lane, shards, rows] : shares_)
        layers_.gemm(lane, slice(passes[l].x, rows, in), slice(dy, rows, out),
                     {.m = in,
                      .n = out,
                      .k = shard_rows(),
                      .transposes_a = true,
                      .beta = micro == 0 ? 0.0f : 1.0f,
                      .batch = shards.count},
                     slice(gradients, shards, stack_[l].size()));
      if (l > 0) dy = input_gradient(stack_[l], dy, passes[l - 1].product);
      if (micro + 1 == micro_batches_) reduce(stack_[l]);
    }
  }

  // Through the layer's weights and the activation below them.
  Operand input_gradient(const Layer& layer, Operand dy, Operand product_below) {
    const auto& [in, out, weights, gradients] = layer;
    const Operand dx = layers_.output(batch_ * in), below = layers_.output(batch_ * in);
    for (const auto& [lane, shards, rows] : shares_)
      layers_.gemm(lane, slice(dy, rows, out), weights, {.m = rows.count, .n = in, .k = out, .transposes_b = true},
                   slice(dx, rows, in));
    for (const auto& [lane, shards, rows] : shares_)
      layers_.gelu_backward(lane, slice(product_below, rows, in), slice(dx, rows, in), rows.count * in,
                            slice(below, rows, in));
    return below;
  }

  // The mean over all samples, including those of other ranks.
  void reduce(const Layer& layer) {
    const int ranks = step_.ranks().count;
    const float scale = 1 / static_cast<float>(micro_batches_ * batch_ * ranks);
    const Operand mean = layers_.output(layer.size());
    const Operand everywhere = ranks > 1 ? layers_.output(layer.size()) : mean;
    for (std::int64_t i = 0; i < shards_; ++i) {
      const Lane lane = lanes_[kReduce][i];
      const Part piece = part_of(layer.size(), shards_, i);
      const Operand parts{layer.gradients.buffer, elements(piece.begin)};
      layers_.sum(lane, parts, shards_, piece.count, layer.size(), scale, slice(mean, piece));
      if (ranks > 1) step_.collective(CollectiveOp::all_reduce, lane, slice(mean, piece), slice(everywhere, piece));
    }
  }

  std::int64_t micro_batches_, batch_, shards_;
  std::vector<Layer> stack_;
  std::vector<Share> shares_;  // the compute streams' parts of every micro-batch
};

}  // namespace

Workload grad_accum() {
  return {
      .name = "grad_accum",
      .summary = "Gradients over micro-batches, reduced layer by layer beside backward",
      .category = "distributed",
      .priority = 2,
      .unit = "samples/s",
      .scaling = Scaling::divided,
      .shows = "early reduction of gradients while the next micro-batch computes",
      .streams = {1, 6, kMaxStreams},
      .params =
          {
              integer_param("inputs", "width of the input", {16, 128, 1024}, 8, 65536),
              integer_param("hidden", "width of the two hidden layers", {32, 192, 2048}, 8, 65536),
              integer_param("outputs", "width of the output", {8, 100, 1000}, 8, 65536),
              integer_param("batch", "samples of a micro-batch; a multiple of 16, and at least one per compute stream",
                            {32, 32, 32}, 16, 65536),
              integer_param("micro_batches", "micro-batches per gradient", {4, 4, 4}, 1, 256),
          },
      .roles = {"compute", "reduce"},
      .build = build_model<Accumulated>};
}

}  // namespace weir::workload_list
