// A training step of a ranking model: tokens from sparse features (embedding table) and dense ones, encoder layers, a
// scorer, weighted cross-entropy, AdamW. Sharded over ranks like FSDP2, or replicated like DDP.
#include "step/workload/ranking_transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "step/workload/encoder.h"
#include "step/workload/list.h"
#include "step/workload/model.h"
#include "step/workload/ranking_units.h"

namespace weir {
namespace {

constexpr auto kF32 = ElementType::f32, kI32 = ElementType::i32;

// Compute streams that a micro-batch can use: query, key, value and out have one each.
constexpr std::int64_t kLanesPerMicroBatch = 4;

// On more than 16 streams, enough micro-batches for all that compute and enough pieces for all others.
RankingUnits::Options options_of(const Params& params, const std::vector<RoleLanes>& lanes) {
  const std::int64_t most = lanes[RankingUnits::kCompute].count;
  RankingUnits::Options options;
  options.is_sharded = params.choice("mode") == "fsdp";
  options.prefetch = params.integer("prefetch");
  options.reshards = params.integer("reshard") == 1;
  options.bucket_bytes = params.integer("bucket_kib") * 1024;
  options.accumulation = std::max(params.integer("accumulation"), divided_up(most, kLanesPerMicroBatch));
  options.fewest_pieces = divided_up(most, params.integer("layers") + 2);
  options.gradient_slots = params.integer("gradient_slots");
  options.shard_group = options.is_sharded ? params.integer("shard_group") : 0;
  if (options.shard_group > 0 && params.ranks.count % options.shard_group != 0)
    reject_param("shard_group", options.shard_group,
                 fmt::format("there {} {} rank{}", params.ranks.count == 1 ? "is" : "are", params.ranks.count,
                             params.ranks.count == 1 ? "" : "s"),
                 "Use a number that divides the number of ranks; 0: all of them.");
  options.clip = static_cast<float>(params.number("clip"));
  options.rate = static_cast<float>(params.number("rate"));
  options.decay = static_cast<float>(params.number("decay"));
  options.beta1 = static_cast<float>(params.number("beta1"));
  options.beta2 = static_cast<float>(params.number("beta2"));
  options.epsilon = static_cast<float>(params.number("epsilon"));
  if (const std::int64_t total = params.integer("total_steps"); total > 0) {
    const std::string& schedule = params.choice("schedule");
    options.schedule = schedule == "cosine" ? 2 : schedule == "linear" ? 1 : 0;
    options.warmup_steps = params.integer("warmup_steps");
    options.total_steps = total;
    options.least_rate = static_cast<float>(params.number("least_rate"));
    if (options.least_rate > options.rate)
      reject_param("least_rate", params.number("least_rate"), "it is above the learning rate",
                   "Use a smaller one, or a larger rate.");
  }
  return options;
}

class Trainer : Model {
 public:
  Trainer(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1, 1, 1}),
        options_(options_of(params, lanes_)),
        layer_count_(params.integer("layers")),
        vocab_(params.integer("vocab")),
        sparse_(params.integer("sparse")),
        dense_(params.integer("dense")),
        batch_(params.integer("batch")),
        scorer_(params.integer("scorer")),
        dropout_(static_cast<float>(params.number("dropout"))),
        positive_weight_(static_cast<float>(params.number("positive_weight"))),
        sizes_{.tokens = sparse_ + 1,
               .batch = batch_ / params.ranks.count,
               .dim = params.integer("dim"),
               .heads = params.integer("heads"),
               .mlp = params.integer("mlp")},
        encoder_(layers_, sizes_),
        units_(checked(params), lanes_, options_, unit_sizes()) {
    // Like FSDP2: work that others wait for comes first when streams compete.
    lanes_[Role::kAllGather].priority = lanes_[Role::kReduceScatter].priority = 1;
    // DDP gathers nothing, so those streams carry the batch to the device.
    if (RoleLanes& gather = lanes_[Role::kAllGather]; !options_.is_sharded)
      gather = {gather.first, gather.count, Role::kAux};
  }

  Step build() {
    hold_batch();
    units_.allocate();
    losses_ = step_.output(kF32, elements(options_.accumulation));
    note_step();
    for (std::int64_t m = 0; m < options_.accumulation; ++m) fetch(m);
    for (std::int64_t m = 0; m < options_.accumulation; ++m) {
      take_lanes(m);
      forward(m);
      if (m + 1 == options_.accumulation) report_loss();
      backward(m);
    }
    units_.step();
    return finish(sizes_.batch * options_.accumulation);
  }

 private:
  using Role = RankingUnits::Role;
  struct Samples {
    Operand ids, dense, targets, weights;  // ids: [sparse][batch]
  };

  std::size_t last_unit() const { return at(layer_count_ + 1); }
  // Those of the current micro-batch.
  const RoleLanes& compute() const { return compute_; }
  void take_lanes(std::int64_t m) {
    const RoleLanes& all = lanes_[Role::kCompute];
    const std::int64_t groups = divided_up(all.count, kLanesPerMicroBatch);
    const Part own = part_of(all.count, groups, m % groups);
    compute_ = {all.first + static_cast<int>(own.begin), static_cast<int>(own.count), all.role, all.priority};
  }
  float beta(std::int64_t m) const { return m == 0 ? 0.0f : 1.0f; }

  // Checks the sizes before anything is built from them.
  Layers& checked(const Params& params) {
    require_multiple("dim", sizes_.dim, "heads", sizes_.heads);
    require_multiple("batch", batch_, "world size", params.ranks.count);
    return layers_;
  }

  // Root (table and projection), one per layer, scorer (two matrices). The scales preserve the variance of the input.
  std::vector<RankingUnits::Unit> unit_sizes() const {
    const auto scale = [](std::int64_t rows) { return std::sqrt(3.0f / static_cast<float>(rows)); };
    std::vector<RankingUnits::Unit> units = {{(vocab_ + dense_) * sizes_.dim, scale(dense_)}};
    units.resize(at(layer_count_ + 1), {EncoderLayer::parameter_count(sizes_), scale(sizes_.dim)});
    units.push_back({(sizes_.dim + 1) * scorer_, scale(sizes_.dim)});
    return units;
  }

  // The whole global batch of all micro-batches, the same on every rank.
  void hold_batch() {
    const std::int64_t samples = options_.accumulation * batch_;
    host_ids_ = step_.host(kI32, elements(samples * sparse_), Init::uniform, static_cast<float>(vocab_));
    host_dense_ = step_.host(layers_.type(), elements(samples * dense_), Init::uniform);
    host_labels_ = step_.host(kI32, elements(samples), Init::uniform, 2);
    // Indexed by label: 0 and 1 as floats, and the weight of a sample.
    targets_ = step_.ramp(kF32, 2, 2);
    weights_ = step_.ramp(kF32, 2, 2 * (positive_weight_ - 1), 1);
    broadcast_ = step_.constant(kI32, elements(sizes_.tokens), 0);
    if (dropout_ > 0) dropout_keys_ = step_.uniform(kI32, elements(4 * layer_count_), 1 << 24);
  }

  // Dropout draws by the number of the step, of which it has a copy, because the optimizer changes it.
  void note_step() {
    if (dropout_ <= 0) return;
    done_ = step_.output(kF32, 3);
    step_.copy(lanes_[options_.is_sharded ? Role::kAux : Role::kAllGather][fetched_++], units_.state(), {done_});
  }
  EncoderLayer::Dropout dropout(std::int64_t layer, std::int64_t m) const {
    return {.probability = dropout_,
            .done = {done_, 0, 1},
            .keys = {dropout_keys_, elements(4 * layer), 4},
            .samples = options_.accumulation * batch_,
            .first = first_sample(m)};
  }

  // This rank's samples of a micro-batch.
  std::int64_t first_sample(std::int64_t m) const { return m * batch_ + step_.ranks().rank * sizes_.batch; }
  void fetch(std::int64_t m) {
    const std::int64_t first = first_sample(m), count = sizes_.batch;
    const RoleLanes& lanes = lanes_[options_.is_sharded ? Role::kAux : Role::kAllGather];
    const auto own = [&](BufferId host, ElementType type, std::int64_t width) {
      const Operand to{step_.output(type, elements(count * width))};
      step_.copy(lanes[fetched_++], {host, elements(first * width), elements(count * width)}, to);
      return to;
    };
    const Operand ids = own(host_ids_, kI32, sparse_), dense = own(host_dense_, layers_.type(), dense_);
    const Operand labels = own(host_labels_, kI32, 1);
    // Rows of the model are [tokens][batch], so sparse tokens and the dense one are contiguous.
    const Operand by_feature{step_.output(kI32, elements(count * sparse_))};
    step_.launch("transpose", lanes[fetched_++], {.type = kI32, .dims = {1, count, sparse_, 1}}, {ids, by_feature});
    const auto by_label = [&](BufferId table) {
      const Operand to{step_.output(kF32, elements(count))};
      step_.launch("gather", lanes[fetched_++], {.type = kF32, .dims = {count, 1, 2}}, {{table}, labels, to});
      return to;
    };
    const Operand targets = by_label(targets_);
    samples_.push_back({by_feature, dense, targets, by_label(weights_)});
  }

  // Parts of the root's and the scorer's parameters or gradients.
  Operand table(Operand root) const { return {root.buffer, root.offset, elements(vocab_ * sizes_.dim)}; }
  Operand projection(Operand root) const {
    return {root.buffer, root.offset + elements(vocab_ * sizes_.dim), elements(dense_ * sizes_.dim)};
  }
  Operand hidden_weights(Operand scorer) const {
    return {scorer.buffer, scorer.offset, elements(sizes_.dim * scorer_)};
  }
  Operand score_weights(Operand scorer) const {
    return {scorer.buffer, scorer.offset + elements(sizes_.dim * scorer_), elements(scorer_)};
  }
  // Rows of the sparse tokens, followed by the dense one.
  Operand sparse_rows(Operand tokens) const {
    return {tokens.buffer, 0, elements(sparse_ * sizes_.batch * sizes_.dim)};
  }
  Operand dense_rows(Operand tokens) const {
    return {tokens.buffer, elements(sparse_ * sizes_.batch * sizes_.dim), elements(sizes_.batch * sizes_.dim)};
  }

  void forward(std::int64_t m) {
    const Samples& samples = samples_[at(m)];
    const std::int64_t count = sizes_.batch, dim = sizes_.dim;
    const Operand root = units_.use(0);
    Operand x = layers_.output(sizes_.rows() * dim);
    layers_.gather(compute()[0], table(root), vocab_, samples.ids, sparse_ * count, dim, sparse_rows(x));
    layers_.gemm(compute()[1], samples.dense, projection(root), {count, dim, dense_}, dense_rows(x));
    kept_.assign(at(layer_count_), {});
    for (std::int64_t l = 0; l < layer_count_; ++l)
      x = encoder_.forward(compute(), x, units_.use(at(l + 1)), kept_[at(l)], dropout(l, m));

    scorer_parameters_ = units_.use(last_unit());
    const Lane lane = compute()[0];
    pooled_ = layers_.sum(lane, x, sizes_.tokens, count * dim, count * dim, 1 / static_cast<float>(sizes_.tokens));
    hidden_ = layers_.gemm(lane, pooled_, hidden_weights(scorer_parameters_), {count, scorer_, dim});
    active_ = layers_.gelu(lane, hidden_, count * scorer_);
    const Operand scores = layers_.gemm(lane, active_, score_weights(scorer_parameters_), {count, 1, scorer_});
    // The mean over all samples of all ranks and micro-batches, so that only sums remain to be computed between them.
    const float scale = 1 / static_cast<float>(batch_ * options_.accumulation);
    d_scores_ = layers_.output(count);
    step_.launch("weighted_bce", lane, {.type = layers_.type(), .dims = {count}, .scalars = {scale}},
                 {scores, samples.targets, samples.weights, d_scores_, {losses_, elements(m), 1}});
  }

  void report_loss() {
    const Lane lane = lanes_[Role::kAux][0];
    Operand own{losses_};
    if (options_.accumulation > 1) {
      own = {step_.output(kF32, 1)};
      step_.launch("sum_rows", lane, {.type = kF32, .dims = {1, options_.accumulation, 1, 1}, .scalars = {1}},
                   {{losses_}, own});
    }
    step_.collective(CollectiveOp::all_reduce, lane, own, {step_.output(kF32, 1)});
  }

  // A unit's gradient is complete on this rank.
  void complete(std::size_t unit, std::int64_t m) {
    if (m + 1 == options_.accumulation) units_.reduce(unit);
  }

  // From the scores back to the encoder's output.
  Operand score_backward(std::int64_t m) {
    const std::int64_t count = sizes_.batch, dim = sizes_.dim;
    const Operand gradient = units_.gradient(last_unit(), m);
    const Lane lane = compute()[0];
    const Operand d_active = layers_.gemm(lane, d_scores_, score_weights(scorer_parameters_),
                                          {.m = count, .n = scorer_, .k = 1, .transposes_b = true});
    layers_.gemm(compute()[1], active_, d_scores_,
                 {.m = scorer_, .n = 1, .k = count, .transposes_a = true, .beta = beta(m)}, score_weights(gradient));
    const Operand d_hidden = layers_.gelu_backward(lane, hidden_, d_active, count * scorer_);
    layers_.gemm(compute()[2], pooled_, d_hidden,
                 {.m = dim, .n = scorer_, .k = count, .transposes_a = true, .beta = beta(m)}, hidden_weights(gradient));
    const Operand d_pooled = layers_.gemm(
        lane, d_hidden, hidden_weights(scorer_parameters_),
        {.m = count, .n = dim, .k = scorer_, .transposes_b = true, .alpha = 1 / static_cast<float>(sizes_.tokens)});
    complete(last_unit(), m);
    // Every token has the same share of the mean.
    return layers_.gather(lane, d_pooled, 1, {broadcast_}, sizes_.tokens, count * dim);
  }

  void backward(std::int64_t m) {
    const Samples& samples = samples_[at(m)];
    const std::int64_t count = sizes_.batch, dim = sizes_.dim;
    Operand d_x = score_backward(m);
    for (std::int64_t l = layer_count_ - 1; l >= 0; --l) {
      const Operand parameters = units_.use(at(l + 1)), gradient = units_.gradient(at(l + 1), m);
      d_x = encoder_.backward(compute(), d_x, parameters, kept_[at(l)], gradient, beta(m), dropout(l, m));
      complete(at(l + 1), m);
    }
    const Operand gradient = units_.gradient(0, m);
    step_.launch("embedding_grad", compute()[0],
                 {.type = layers_.type(), .dims = {sparse_ * count, dim, vocab_}, .scalars = {beta(m)}},
                 {samples.ids, sparse_rows(d_x), table(gradient)});
    layers_.gemm(compute()[1], samples.dense, dense_rows(d_x),
                 {.m = dense_, .n = dim, .k = count, .transposes_a = true, .beta = beta(m)}, projection(gradient));
    complete(0, m);
  }

  RankingUnits::Options options_;
  std::int64_t layer_count_, vocab_, sparse_, dense_, batch_, scorer_;
  float dropout_, positive_weight_;
  EncoderSizes sizes_;
  EncoderLayer encoder_;
  RankingUnits units_;
  BufferId host_ids_ = 0, host_dense_ = 0, host_labels_ = 0, targets_ = 0, weights_ = 0, broadcast_ = 0, losses_ = 0;
  BufferId done_ = 0, dropout_keys_ = 0;
  std::int64_t fetched_ = 0;
  std::vector<Samples> samples_;  // by micro-batch
  // For the current micro-batch.
  RoleLanes compute_;
  std::vector<EncoderLayer::Kept> kept_;
  Operand scorer_parameters_, pooled_, hidden_, active_, d_scores_;
};

}  // namespace

RankingBuffers ranking_buffers(const Step& step) {
  const auto commands = step.commands();
  for (auto id = static_cast<CommandId>(commands.size()); id-- > 0;) {
    if (commands[id].kind != CommandKind::collective && commands[id].kind != CommandKind::copy) continue;
    const Buffer& buffer = step.buffers()[step.accesses(id)[1].buffer];
    if (buffer.type == kF32 && buffer.count == 1) return {step.accesses(id)[1].buffer};
  }
  reject("the step has no loss", "It must be one of ranking_transformer.");
}

Workload workload_list::ranking_transformer() {
  return {
      .name = "ranking_transformer",
      .summary = "A ranking model's training step, sharded (FSDP2) or replicated (DDP)",
      .category = "distributed",
      .priority = 1,
      .unit = "samples/s",
      .scaling = Scaling::divided,
      .shows = "how much of gathers and reductions hides behind compute, and what prefetch and buckets change",
      .streams = {1, 4, kMaxStreams},
      .params =
          {
              integer_param("layers", "encoder layers", {2, 4, 12}, 1, 256),
              integer_param("dim", "width of a token", {16, 128, 1024}, 2, 32768),
              integer_param("heads", "attention heads", {2, 4, 16}, 1, 256),
              integer_param("mlp", "width of a layer's MLP", {32, 512, 4096}, 2, 131072),
              integer_param("vocab", "rows of the embedding table", {50, 1000, 60000}, 2, 1 << 24),
              integer_param("sparse", "sparse features: tokens from the table", {3, 15, 63}, 1, 4096),
              integer_param("dense", "dense features: together one token", {5, 13, 13}, 1, 4096),
              integer_param("batch", "samples of a micro-batch, over all ranks", {8, 32, 256}, 1, 1 << 20),
              integer_param("accumulation", "micro-batches per step; at least one per 16 streams", {1, 1, 1}, 1, 64),
              integer_param("scorer", "width of the scorer's hidden layer", {8, 64, 512}, 1, 32768),
              choice_param("mode", "parameters sharded, or on every rank", "fsdp", {"fsdp", "ddp"}),
              integer_param("prefetch", "fsdp: units that are gathered ahead", {1, 1, 1}, 0, 64),
              integer_param("reshard", "fsdp: 1 lets go of parameters after forward, backward gathers again", {1, 1, 1},
                            0, 1),
              integer_param("bucket_kib", "most KiB of a collective; 0: a unit each", {0, 0, 0}, 0, 1 << 22),
              integer_param("gradient_slots", "fsdp: gradients that may wait for their reduction; 0: all", {2, 2, 2}, 0,
                            64),
              integer_param("shard_group", "fsdp: ranks that share one copy of the parameters; 0: all", {0, 0, 0}, 0,
                            4096),
              number_param("clip", "most that the norm of all gradients may be; 0: any", 1, 0, 1e9),
              number_param("rate", "AdamW's learning rate", 1e-3, 0, 10),
              number_param("decay", "AdamW's weight decay", 0.01, 0, 10),
              number_param("beta1", "AdamW's share of the old mean", 0.9, 0, 0.999999),
              number_param("beta2", "AdamW's share of the old mean square", 0.999, 0, 0.999999),
              number_param("epsilon", "what AdamW adds to the root of the mean square", 1e-8, 1e-30, 1),
              integer_param("total_steps", "steps after which the rate is the least one; 0: it is constant", {0, 0, 0},
                            0, 1 << 24),
              integer_param("warmup_steps", "steps in which the rate rises, if total_steps is set", {0, 0, 0}, 0,
                            1 << 24),
              choice_param("schedule", "how the rate falls after the warm-up", "linear", {"linear", "cosine", "none"}),
              number_param("least_rate", "the rate at the end", 0, 0, 10),
              number_param("dropout", "share of activations that become 0, drawn anew in every step", 0, 0, 0.99),
              number_param("positive_weight", "weight of positive samples", 2, 0, 1e6),
          },
      .roles = {"compute", "all_gather", "reduce_scatter", "aux"},
      .build = build_model<Trainer>};
}

}  // namespace weir
