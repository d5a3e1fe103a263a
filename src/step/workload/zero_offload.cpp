// Optimizer state in host memory: parameters are copied in one layer ahead of the computation, gradients are copied
// out, Adam runs on host threads, and the updated parameters are copied back.
#include <algorithm>
#include <cmath>

#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

// Gradients that are computed separately and then summed, on up to 48 streams, which have 16 for computing; twice and
// four times as many on up to 96 and 128.
constexpr std::int64_t kMinShards = 16;

class Offloaded : Model {
  enum Role : std::uint8_t { kCopyIn, kCompute, kCopyOut, kUpdate };

 public:
  Offloaded(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 2, 1, 2}),
        count_(params.integer("layers")),
        hidden_(params.integer("hidden")),
        rows_(params.integer("rows")),
        shards_(shards_for(kMinShards, lanes_[kCompute])),
        // At least one piece of some layer per stream that copies or updates.
        pieces_(std::max(params.integer("pieces"), divided_up(lanes_[kUpdate].count, count_))) {
    require_multiple_of("rows", rows_, "gradient shards", kMinShards);
    rows_ = divided_up(rows_, shards_) * shards_;
    shares_ = shares_of(lanes_[kCompute], shards_, shard_rows());
    for (Operand& slot : slots_) slot = layers_.output(size());
    for (std::int64_t l = 0; l < count_; ++l) stack_.push_back(layer());
    updated_ = {step_.output(ElementType::f32, elements(count_ * size()))};
  }

  Step build() {
    passes_.push_back({samples(rows_ * hidden_), {}});
    fetch(0);
    for (std::int64_t l = 0; l < count_; ++l) {
      if (l + 1 < count_) fetch(l + 1);
      forward(l);
    }
    Operand dy = loss_gradient();
    for (std::int64_t l = count_ - 1; l >= 0; --l) {
      // The last two layers are still in their slots.
      if (l > 0 && l < count_ - 1) fetch(l - 1);
      dy = backward(l, dy);
      update(l);
    }
    // Only now: a stream keeps its order, so fetches of parameters would wait for Adam.
    for (std::int64_t l = count_ - 1; l >= 0; --l) copy_back(l);
    return finish(rows_);
  }

 private:
  struct Layer {
    Operand fetched;               // host: used by the computation
    Operand master, mean, square;  // host, f32: updated by Adam
    Operand parts, gradient;       // [shards][size] and its sum
    Operand host_gradient;
  };
  struct Pass {
    Operand x, product;  // product: before the activation
  };
  std::int64_t size() const { return hidden_ * hidden_; }
  std::int64_t shard_rows() const { return rows_ / shards_; }
  Operand activations() { return layers_.output(rows_ * hidden_); }
  Operand slot(std::int64_t l) const { return slots_[at(l % 2)]; }
  Operand host(ElementType type, Init init, float scale = 1, float offset = 0) {
    return {step_.host(type, elements(size()), init, scale, offset)};
  }

  Layer layer() {
    constexpr auto kF32 = ElementType::f32;
    const float scale = std::sqrt(3.0f / static_cast<float>(hidden_));
    Layer made;
    made.master = host(kF32, Init::uniform, scale);
    // If the computation type is narrower than the master, it has parameters of its own, which Adam does not touch.
    made.fetched = layers_.type() == kF32 ? made.master : host(layers_.type(), Init::uniform, scale);
    made.mean = host(kF32, Init::uniform, 0.01f);
    made.square = host(kF32, Init::uniform, 5e-5f, 1e-4f);
    made.parts = layers_.output(shards_ * size());
    made.gradient = layers_.output(size());
    made.host_gradient = host(layers_.type(), Init::poison);
    return made;
  }

  template <class Body>
  void each_piece(std::int64_t l, Role role, Body&& body) {
    for (std::int64_t p = 0; p < pieces_; ++p) body(lanes_[role][l * pieces_ + p], part_of(size(), pieces_, p));
  }
  template <class Body>
  void each_share(Body&& body) {
    for (const Share& share : shares_) body(share.lane, share.shards, share.rows);
  }

  void fetch(std::int64_t l) {
    each_piece(l, kCopyIn, [&](Lane lane, Part piece) {
      step_.copy(lane, slice(stack_[at(l)].fetched, piece), slice(slot(l), piece));
    });
  }

  void forward(std::int64_t l) {
    Pass& pass = passes_.back();
    pass.product = activations();
    each_share([&](Lane lane, Part, Part rows) {
      layers_.gemm(lane, slice(pass.x, rows, hidden_), slot(l), {rows.count, hidden_, hidden_},
                   slice(pass.product, rows, hidden_));
    });
    if (l + 1 == count_) return;
    const Operand next = activations();
    each_share([&](Lane lane, Part, Part rows) {
      layers_.gelu(lane, slice(pass.product, rows, hidden_), rows.count * hidden_, slice(next, rows, hidden_));
    });
    passes_.push_back({next, {}});
  }

  Operand loss_gradient() {
    const Operand target = samples(rows_ * hidden_), dy = activations();
    each_share([&](Lane lane, Part, Part rows) {
      layers_.add(lane, slice(passes_.back().product, rows, hidden_), slice(target, rows, hidden_),
                  rows.count * hidden_, 1, -1, slice(dy, rows, hidden_));
    });
    return dy;
  }

  // Returns the gradient for the layer below; the first layer's is that of the samples.
  Operand backward(std::int64_t l, Operand dy) {
    each_share([&](Lane lane, Part shards, Part rows) {
      layers_.gemm(lane, slice(passes_[at(l)].x, rows, hidden_), slice(dy, rows, hidden_),
                   {.m = hidden_, .n = hidden_, .k = shard_rows(), .transposes_a = true, .batch = shards.count},
                   slice(stack_[at(l)].parts, shards, size()));
    });
    const Operand dx = activations();
    each_share([&](Lane lane, Part, Part rows) {
      layers_.gemm(lane, slice(dy, rows, hidden_), slot(l),
                   {.m = rows.count, .n = hidden_, .k = hidden_, .transposes_b = true}, slice(dx, rows, hidden_));
    });
    if (l == 0) return dx;
    const Operand below = activations();
    each_share([&](Lane lane, Part, Part rows) {
      layers_.gelu_backward(lane, slice(passes_[at(l - 1)].product, rows, hidden_), slice(dx, rows, hidden_),
                            rows.count * hidden_, slice(below, rows, hidden_));
    });
    return below;
  }

  // Sums the layer's gradient and copies it to the host, where Adam uses it.
  void update(std::int64_t l) {
    const Layer& own = stack_[at(l)];
    each_piece(l, kCompute, [&](Lane lane, Part piece) {
      layers_.sum(lane, {own.parts.buffer, elements(piece.begin)}, shards_, piece.count, size(),
                  1 / static_cast<float>(rows_), slice(own.gradient, piece));
    });
    each_piece(l, kCopyOut, [&](Lane lane, Part piece) {
      step_.copy(lane, slice(own.gradient, piece), slice(own.host_gradient, piece));
    });
    each_piece(l, kUpdate, [&](Lane lane, Part piece) {
      step_.launch_on_host("adam", lane,
                           {.type = layers_.type(), .dims = {piece.count}, .scalars = {1e-3f, 0.9f, 0.999f, 1e-8f}},
                           {slice(own.host_gradient, piece), slice(own.master, piece), slice(own.mean, piece),
                            slice(own.square, piece)});
    });
  }

  void copy_back(std::int64_t l) {
    each_piece(l, kCopyIn, [&](Lane lane, Part piece) {
      step_.copy(lane, slice(stack_[at(l)].master, piece), slice(updated_, {l * size() + piece.begin, piece.count}));
    });
  }

  std::int64_t count_, hidden_, rows_, shards_, pieces_;
  std::vector<Share> shares_;  // the compute streams' parts of the rows
  Operand slots_[2];           // layers alternate
  Operand updated_;            // all layers' parameters after the update
  std::vector<Layer> stack_;
  std::vector<Pass> passes_;
};

}  // namespace

Workload zero_offload() {
  return {.name = "zero_offload",
          .summary = "Parameters in, gradients out, Adam on the host",
          .category = "pipeline",
          .priority = 3,
          .unit = "samples/s",
          .scaling = Scaling::divided,
          .shows = "parameters in, gradients out, host optimizer, both copy directions",
          .streams = {1, 6, kMaxStreams},
          .params =
              {
                  integer_param("layers", "layers of one matrix each", {4, 4, 4}, 1, 256),
                  integer_param("hidden", "rows and columns of a layer's parameters", {16, 192, 2048}, 8, 32768),
                  integer_param("rows", "samples; a multiple of 16, and at least one per compute stream",
                                {32, 128, 1024}, kMinShards, 1 << 20),
                  integer_param("pieces", "copies and updates per layer", {8, 8, 8}, 1, 64),
              },
          .roles = {"copy_in", "compute", "copy_out", "update"},
          .build = build_model<Offloaded>};
}

}  // namespace weir::workload_list
