// Disaggregated serving: prompts are worked through on some streams, their keys and values are handed over layer by
// layer (to the next rank, where there are several), and other streams with priority generate the tokens.
#include "step/workload/decoder.h"
#include "step/workload/list.h"

namespace weir::workload_list {
namespace {

enum Role : std::uint8_t { kPrefill, kHandOff, kDecode };

class Serving {
 public:
  Serving(const Params& params, int stream_count)
      : step_(params.seed, params.ranks),
        layers_(step_, params.precision),
        decoder_(layers_, {params.integer("layers"), params.integer("hidden"), params.integer("heads"),
                           params.integer("vocabulary")}),
        vocabulary_(params.integer("vocabulary")),
        prompt_(params.integer("prompt")),
        tokens_(params.integer("tokens")),
        prefill_{0, stream_count / 2, kPrefill, 0},
        decode_{stream_count / 2, stream_count - stream_count / 2, kDecode, 1},
        requests_(params.integer("requests") * decode_.count) {}

  Step build(int stream_count) {
    for (std::int64_t r = 0; r < requests_; ++r) prefill(r);
    for (std::int64_t t = 1; t < tokens_; ++t)
      for (std::int64_t r = 0; r < requests_; ++r) decode(r, t);
    step_.work(static_cast<double>(requests_ * tokens_));
    return std::move(step_).seal(stream_count);
  }

 private:
  struct Request {
    Decoder::Cache cache;  // the decoding side's
    Operand token;
  };

  // The token after `hidden`, which request r has now.
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
    const Operand length{step_.constant(ElementType::i32, 1, static_cast<float>(prompt_))};
    const Operand words{step_.integers(static_cast<std::uint64_t>(prompt_), vocabulary_)};
    const Operand x = decoder_.embed(lane, words, prompt_);
    const Operand hidden = decoder_.forward(lane, x, {1, prompt_, length}, own);
    const Operand last{hidden.buffer, static_cast<std::uint64_t>((prompt_ - 1) * h), static_cast<std::uint64_t>(h)};
    const Operand first = hand_out(lane, last, r);

    // Hand-off: with several ranks the next one decodes what this one has prefilled.
    const Lane hand_off{lane.stream, kHandOff, 0};
    const auto block = [&](Operand cache) { return Operand{cache.buffer, 0, static_cast<std::uint64_t>(prompt_ * h)}; };
    for (std::size_t l = 0; l < own.keys.size(); ++l) {
      step_.collective(CollectiveOp::shift, hand_off, own.keys[l], block(request.cache.keys[l]));
      step_.collective(CollectiveOp::shift, hand_off, own.values[l], block(request.cache.values[l]));
    }
    step_.collective(CollectiveOp::shift, hand_off, first, request.token);
    requests_made_.push_back(std::move(request));
  }

  void decode(std::int64_t r, std::int64_t t) {
    Request& request = requests_made_[static_cast<std::size_t>(r)];
    const Lane lane = decode_[r];
    const Operand length{step_.constant(ElementType::i32, 1, static_cast<float>(prompt_ + t))};
    const Operand x = decoder_.embed(lane, request.token, 1);
    const Operand hidden = decoder_.forward(lane, x, {1, 1, length}, request.cache);
    request.token = hand_out(lane, hidden, r);
  }

  StepBuilder step_;
  Layers layers_;
  Decoder decoder_;
  std::int64_t vocabulary_, prompt_, tokens_;
  Lanes prefill_, decode_;
  std::int64_t requests_;
  std::vector<Request> requests_made_;
};

}  // namespace

Workload disaggregated_serving() {
  Workload workload;
  workload.name = "disaggregated_serving";
  workload.summary = "Prefill here, decode there, KV blocks handed over";
  workload.category = "inference";
  workload.priority = 1;
  workload.unit = "tokens/s";
  workload.scaling = Scaling::requests;
  workload.shows = "prefill streams, KV-cache hand-off copies, decode streams, priority on decode";
  workload.streams = {4, 8, 64};
  workload.params = {
      integer_param("layers", "decoder layers", {1, 2, 4}, 1, 256),
      integer_param("hidden", "width of the model", {16, 64, 1024}, 1, 32768),
      integer_param("heads", "attention heads", {2, 4, 16}, 1, 256),
      integer_param("vocabulary", "tokens that there are", {64, 500, 32000}, 2, 1 << 20),
      integer_param("prompt", "tokens of a prompt", {8, 32, 512}, 1, 1 << 20),
      integer_param("tokens", "tokens that a request gets, the first from its prefill", {3, 4, 16}, 2, 4096),
      integer_param("requests", "requests per decode stream", {1, 1, 2}, 1, 1024),
  };
  workload.roles = {"prefill", "hand_off", "decode"};
  workload.build = [](const Params& params, int stream_count) {
    return Serving(params, stream_count).build(stream_count);
  };
  return workload;
}

}  // namespace weir::workload_list
