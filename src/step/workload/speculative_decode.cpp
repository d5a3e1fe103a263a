// Speculative decoding: a small model proposes tokens, a large one verifies them in one pass, and tokens on which both
// agree are accepted. The device compares real arg-max tokens, so the number accepted is known only afterwards.
#include "step/workload/decoder.h"
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

class Speculation : Model {
  enum Role : std::uint8_t { kDraft, kTarget };

 public:
  Speculation(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1}),
        draft_(layers_, {params.integer("draft_layers"), params.integer("draft_hidden"), params.integer("draft_heads"),
                         0, "draft_hidden", "draft_heads"}),
        target_(layers_, {params.integer("layers"), params.integer("hidden"), params.integer("heads")}),
        vocabulary_(params.integer("vocabulary")),
        context_(params.integer("context")),
        speculate_(params.integer("speculate")),
        rounds_(params.integer("rounds")),
        noise_(static_cast<float>(params.number("disagreement"))),
        requests_(stream_count),
        positions_(context_ + rounds_ * (speculate_ + 1) + 1) {
    lanes_[kTarget].priority = 1;  // everything else of a request waits for its verification
    // Both models use the same table of tokens, and their logits start with the same bigram guess. Their layers make
    // them differ, by `disagreement`: random models would never agree on one of 32000 tokens.
    bigram_in_ = layers_.weights(draft_.hidden(), vocabulary_);
    shared_head_ = layers_.weights(draft_.hidden(), vocabulary_);
    target_in_ = layers_.weights(target_.hidden(), vocabulary_);
    target_head_ = layers_.weights(target_.hidden(), vocabulary_);
  }

  Step build() {
    accepted_ = layers_.integers_output(requests_ * rounds_);
    for (std::int64_t r = 0; r < requests_; ++r)
      all_.push_back({draft_.cache(1, positions_), target_.cache(1, positions_), integer(context_),
                      integers(speculate_ + 1, vocabulary_)});
    for (std::int64_t round = 0; round < rounds_; ++round)
      for (std::int64_t r = 0; r < requests_; ++r) run_round(r, round);
    step_.count_work(accepted_);
    return finish();
  }

 private:
  struct Request {
    Decoder::Cache draft, target;
    Operand length;  // tokens whose keys and values are valid
    Operand tokens;  // [speculate + 1]: the last accepted one, then the draft's proposals
  };

  // scores = bigram guess + noise * the model's output for the context
  Operand logits(Lane lane, Operand tokens, Operand hidden, std::int64_t rows, std::int64_t width, Operand head) {
    const std::int64_t d = draft_.hidden(), v = vocabulary_;
    const Operand guess = layers_.gather(lane, bigram_in_, v, tokens, rows, d);
    const Operand known = layers_.gemm(lane, layers_.layer_norm(lane, guess, rows, d), shared_head_, {rows, v, d});
    const Operand normal = layers_.layer_norm(lane, hidden, rows, width);
    const Operand own = layers_.gemm(lane, normal, head, {rows, v, width});
    return layers_.add(lane, known, own, rows * v, 1, noise_);
  }

  void run_round(std::int64_t r, std::int64_t round) {
    Request& request = all_[at(r)];
    const std::int64_t k = speculate_;
    const Lane draft = lanes_[kDraft][r], target = lanes_[kTarget][r];
    const auto token = [&](std::int64_t i) { return slice(request.tokens, {i, 1}); };

    // One pass more than there are proposals: if all are accepted, the last one's keys and values must exist.
    for (std::int64_t i = 0; i <= k; ++i) {
      const Operand length = layers_.increase(draft, request.length, 1, i + 1);
      const Operand x = layers_.gather(draft, bigram_in_, vocabulary_, token(i), 1, draft_.hidden());
      const Operand hidden = draft_.forward(draft, x, {1, 1, length}, request.draft);
      if (i == k) break;
      const Operand scores = logits(draft, token(i), hidden, 1, draft_.hidden(), shared_head_);
      layers_.arg_max(draft, scores, 1, vocabulary_, token(i + 1));
    }

    const Operand length = layers_.increase(target, request.length, 1, k + 1);
    const Operand x = layers_.gather(target, target_in_, vocabulary_, request.tokens, k + 1, target_.hidden());
    const Operand hidden = target_.forward(target, x, {1, k + 1, length}, request.target);
    const Operand scores = logits(target, request.tokens, hidden, k + 1, target_.hidden(), target_head_);
    const Operand verified = layers_.arg_max(target, scores, k + 1, vocabulary_);

    const Operand next_length = layers_.integers_output(1), next_tokens = layers_.integers_output(k + 1);
    const CommandId accept = step_.launch("accept", target, {.type = ElementType::i32, .dims = {1, k}, .scalars = {}},
                                          {slice(request.tokens, {1, k}), verified, request.length, next_length,
                                           slice(next_tokens, {0, 1}), slice(accepted_, {r * rounds_ + round, 1})});
    step_.token(accept, static_cast<std::uint32_t>(r));
    request.length = next_length;
    request.tokens = next_tokens;
  }

  Decoder draft_, target_;
  std::int64_t vocabulary_, context_, speculate_, rounds_;
  float noise_;
  std::int64_t requests_, positions_;
  Operand bigram_in_, target_in_, accepted_, shared_head_, target_head_;
  std::vector<Request> all_;
};

}  // namespace

Workload speculative_decode() {
  return {.name = "speculative_decode",
          .summary = "Draft, verify, accept: tight chains of small kernels",
          .category = "inference",
          .priority = 1,
          .unit = "tokens/s",
          .scaling = Scaling::requests,
          .shows = "tight draft -> verify -> accept chains, several requests in flight",
          .streams = {1, 6, kMaxStreams},
          .params =
              {
                  integer_param("draft_layers", "layers of the draft model", {1, 2, 4}, 1, 256),
                  integer_param("draft_hidden", "width of the draft model", {8, 32, 256}, 1, 32768),
                  integer_param("draft_heads", "attention heads of the draft model", {2, 2, 4}, 1, 256),
                  integer_param("layers", "layers of the target model", {2, 3, 12}, 1, 256),
                  integer_param("hidden", "width of the target model", {16, 64, 1024}, 1, 32768),
                  integer_param("heads", "attention heads of the target model", {2, 4, 16}, 1, 256),
                  integer_param("vocabulary", "tokens that there are", {64, 1000, 32000}, 2, 1 << 20),
                  integer_param("context", "tokens in the caches before the first round", {8, 32, 128}, 1, 1 << 20),
                  integer_param("speculate", "tokens that the draft proposes per round", {2, 4, 4}, 1, 32),
                  integer_param("rounds", "rounds per request and iteration", {2, 2, 2}, 1, 1000),
                  number_param("disagreement", "how far the models' layers move their logits from the common guess",
                               0.1, 0, 10),
              },
          .roles = {"draft", "target"},
          .build = build_model<Speculation>};
}

}  // namespace weir::workload_list
