// Disaggregated serving: prompts are processed on some streams, their keys and values are passed on layer by layer (to
// the next rank, if there are several), and other streams with priority generate the tokens.
#include <algorithm>

#include "step/workload/decoder.h"
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

class Serving : Model {
  enum Role : std::uint8_t { kPrefill, kHandOff, kDecode };

 public:
  Serving(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 1}),
        decoder_(layers_, {params.integer("layers"), params.integer("hidden"), params.integer("heads"),
                           params.integer("vocabulary")}),
        vocabulary_(params.integer("vocabulary")),
        prompt_(params.integer("prompt")),
        tokens_(params.integer("tokens")),
        prefill_{0, std::max(1, stream_count / 2), kPrefill, 0},
        decode_{stream_count / 2, stream_count - stream_count / 2, kDecode, 1},
        requests_(params.integer("requests") * decode_.count) {}

  Step build() {
    for (std::int64_t r = 0; r < requests_; ++r) prefill(r);
    for (std::int64_t t = 1; t < tokens_; ++t)
      for (std::int64_t r = 0; r < requests_; ++r) decode(r, t);
    return finish(requests_ * tokens_);
  }

 private:
  struct Request {
    Decoder::Cache cache;  // of the decoding side
    Operand token;
  };

  // The token after `hidden`, which becomes request r's current one.
  Operand hand_out(Lane lane, Operand hidden, std::int64_t r) {
    const Operand token = decoder_.next_token(lane, hidden, 1);
    step_.token(step_.command_count() - 1, static_cast<std::uint32_t>(r));
    return token;
  }

  void prefill(std::int64_t r) {
    const Lane lane = prefill_[r];
    const std::int64_t h = decoder_.hidden();
    const Decoder::Cache own = decoder_.cache(1, prompt_);
    Request request{decoder_.cache(1, prompt_ + tokens_), layers_.integers_output(1)};
    const Operand length = integer(prompt_);
    const Operand words = integers(prompt_, vocabulary_);
    const Operand x = decoder_.embed(lane, words, prompt_);
    const Operand hidden = decoder_.forward(lane, x, {1, prompt_, length}, own);
    const Operand first = hand_out(lane, slice(hidden, {prompt_ - 1, 1}, h), r);

    // Hand-off: with several ranks, the next rank decodes what this one has prefilled.
    const Lane hand_off{lane.stream, kHandOff, 0};
    const auto block = [&](Operand cache) { return slice(cache, {0, prompt_}, h); };
    for (std::size_t l = 0; l < own.keys.size(); ++l) {
      step_.collective(CollectiveOp::shift, hand_off, own.keys[l], block(request.cache.keys[l]));
      step_.collective(CollectiveOp::shift, hand_off, own.values[l], block(request.cache.values[l]));
    }
    step_.collective(CollectiveOp::shift, hand_off, first, request.token);
    requests_made_.push_back(std::move(request));
  }

  void decode(std::int64_t r, std::int64_t t) {
    Request& request = requests_made_[at(r)];
    const Lane lane = decode_[r];
    const Operand length = integer(prompt_ + t);
    const Operand x = decoder_.embed(lane, request.token, 1);
    const Operand hidden = decoder_.forward(lane, x, {1, 1, length}, request.cache);
    request.token = hand_out(lane, hidden, r);
  }

  Decoder decoder_;
  std::int64_t vocabulary_, prompt_, tokens_;
  RoleLanes prefill_, decode_;
  std::int64_t requests_;
  std::vector<Request> requests_made_;
};

}  // namespace

Workload disaggregated_serving() {
  return {
      .name = "disaggregated_serving",
      .summary = "Prefill here, decode there, KV blocks handed over",
      .category = "inference",
      .priority = 1,
      .unit = "tokens/s",
      .scaling = Scaling::requests,
      .shows = "prefill streams, KV-cache hand-off copies, decode streams, priority on decode",
      .streams = {1, 8, kMaxStreams},
      .params =
          {
              integer_param("layers", "decoder layers", {1, 2, 4}, 1, 256),
              integer_param("hidden", "width of the model", {16, 64, 1024}, 1, 32768),
              integer_param("heads", "attention heads", {2, 4, 16}, 1, 256),
              integer_param("vocabulary", "tokens that there are", {64, 500, 32000}, 2, 1 << 20),
              integer_param("prompt", "tokens of a prompt", {8, 32, 512}, 1, 1 << 20),
              integer_param("tokens", "tokens that a request gets, the first from its prefill", {3, 4, 16}, 2, 4096),
              integer_param("requests", "requests per decode stream", {1, 1, 2}, 1, 1024),
          },
      .roles = {"prefill", "hand_off", "decode"},
      .build = build_model<Serving>};
}

}  // namespace weir::workload_list
