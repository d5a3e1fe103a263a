// Continuous batching: prompts are processed (compute-bound) while running sequences decode token by token over their
// whole KV caches (memory-bound); when a sequence ends, a finished prompt takes its slot. The device does the
// bookkeeping.
#include "step/workload/decoder.h"
#include "step/workload/list.h"
#include "step/workload/model.h"

namespace weir::workload_list {
namespace {

// Sequences that one stream decodes together.
struct Group {
  std::int64_t slots = 0;
  Decoder::Cache cache;
  Operand lengths, remaining, tokens;
  std::vector<std::int64_t> prompts;  // candidates for its slots
};

class Server : Model {
  enum Role : std::uint8_t { kPrefill, kDecode };

 public:
  Server(const Params& params, int stream_count)
      : Model(params, stream_count, {1, 3}),
        decoder_(layers_, {params.integer("layers"), params.integer("hidden"), params.integer("heads"),
                           params.integer("vocabulary")}),
        vocabulary_(params.integer("vocabulary")),
        prompt_(params.integer("prompt")),
        positions_(params.integer("positions")),
        steps_(params.integer("tokens")),
        sequences_(params.integer("sequences") * stream_count) {
    lanes_[kDecode].priority = 1;  // a token that somebody waits for goes before a prompt that has shown nothing yet
    if (prompt_ + steps_ >= positions_)
      reject_param("positions", positions_, fmt::format("a prompt of {} and {} tokens do not fit", prompt_, steps_),
                   fmt::format("Use positions={} or more.", prompt_ + steps_ + 1));
  }

  Step build() {
    const std::int64_t groups = lanes_[kDecode].count;
    for (std::int64_t g = 0; g < groups; ++g) {
      Group group;
      group.slots = part_of(sequences_, groups, g).count;
      group.cache = decoder_.cache(group.slots, positions_);
      group.lengths = integer(positions_ - steps_, group.slots);
      group.remaining = integers(group.slots, 2 * steps_);  // about half of them end in this iteration
      group.tokens = integers(group.slots, vocabulary_);
      for (std::int64_t p = g; p < lanes_[kPrefill].count; p += groups) group.prompts.push_back(p);
      groups_.push_back(std::move(group));
    }
    produced_ = layers_.integers_output(steps_ * sequences_);
    for (std::int64_t p = 0; p < lanes_[kPrefill].count; ++p) prefill(p);
    for (std::int64_t s = 0; s < steps_; ++s)
      for (std::int64_t g = 0; g < groups; ++g) {
        if (s == steps_ / 2) admit(groups_[at(g)], lanes_[kDecode][g]);
        decode(groups_[at(g)], g, s);
      }
    step_.count_work(produced_);
    return finish();
  }

 private:
  struct Prompt {
    Decoder::Cache cache;
    Operand length, token;
  };

  void prefill(std::int64_t p) {
    const Lane lane = lanes_[kPrefill][p];
    Prompt prompt{decoder_.cache(1, prompt_), integer(prompt_), {}};
    const Operand tokens = integers(prompt_, vocabulary_);
    const Operand x = decoder_.embed(lane, tokens, prompt_);
    const Operand hidden = decoder_.forward(lane, x, {1, prompt_, prompt.length}, prompt.cache);
    prompt.token = decoder_.next_token(lane, slice(hidden, {prompt_ - 1, 1}, decoder_.hidden()), 1);
    prompts_.push_back(std::move(prompt));
  }

  void decode(Group& group, std::int64_t g, std::int64_t s) {
    const Lane lane = lanes_[kDecode][g];
    const Operand x = decoder_.embed(lane, group.tokens, group.slots);
    const Operand hidden = decoder_.forward(lane, x, {group.slots, 1, group.lengths}, group.cache);
    group.tokens = decoder_.next_token(lane, hidden, group.slots);
    const Operand lengths = layers_.integers_output(group.slots), remaining = layers_.integers_output(group.slots);
    const std::int64_t first = s * sequences_ + part_of(sequences_, lanes_[kDecode].count, g).begin;
    const CommandId advance =
        step_.launch("advance", lane, {.type = ElementType::i32, .dims = {group.slots}, .scalars = {}},
                     {group.lengths, group.remaining, lengths, remaining, slice(produced_, {first, group.slots})});
    step_.token(advance, static_cast<std::uint32_t>(g));
    group.lengths = lengths;
    group.remaining = remaining;
  }

  // Finished prompts take the slots of sequences that have ended: their keys and values move in.
  void admit(Group& group, Lane lane) {
    if (group.prompts.empty()) return;
    const auto count = static_cast<std::int64_t>(group.prompts.size());
    const Operand lengths = layers_.integers_output(group.slots), remaining = layers_.integers_output(group.slots);
    const Operand slot_of = layers_.integers_output(count);
    step_.launch("admit", lane,
                 {.type = ElementType::i32, .dims = {group.slots, count, prompt_, steps_}, .scalars = {}},
                 {group.lengths, group.remaining, lengths, remaining, slot_of});
    for (std::int64_t i = 0; i < count; ++i) {
      const Prompt& prompt = prompts_[at(group.prompts[at(i)])];
      const Operand slot = slice(slot_of, {i, 1});
      for (std::size_t l = 0; l < prompt.cache.keys.size(); ++l) {
        const auto move = [&](Operand from, Operand to) {
          layers_.cache_write(lane, from, slot, prompt.length, 1, prompt_, positions_, decoder_.hidden(), group.slots,
                              to);
        };
        move(prompt.cache.keys[l], group.cache.keys[l]);
        move(prompt.cache.values[l], group.cache.values[l]);
      }
      step_.launch("scatter", lane, {.type = ElementType::i32, .dims = {1, 1, group.slots}, .scalars = {}},
                   {prompt.token, slot, group.tokens});
    }
    group.lengths = lengths;
    group.remaining = remaining;
  }

  Decoder decoder_;
  std::int64_t vocabulary_, prompt_, positions_, steps_;
  std::int64_t sequences_;
  Operand produced_;
  std::vector<Group> groups_;
  std::vector<Prompt> prompts_;
};

}  // namespace

Workload continuous_batch() {
  return {.name = "continuous_batch",
          .summary = "Prefill beside decode, slots refilled as sequences end",
          .category = "inference",
          .priority = 1,
          .unit = "tokens/s",
          .scaling = Scaling::requests,
          .shows = "compute-bound prefill beside memory-bound decode that reads its KV cache",
          .streams = {1, 8, kMaxStreams},
          .params =
              {
                  integer_param("layers", "decoder layers", {1, 2, 8}, 1, 256),
                  integer_param("hidden", "width of the model", {16, 64, 1024}, 1, 32768),
                  integer_param("heads", "attention heads", {2, 4, 16}, 1, 256),
                  integer_param("vocabulary", "tokens that there are", {64, 500, 32000}, 2, 1 << 20),
                  integer_param("prompt", "tokens of a prompt; one per prefill stream", {8, 32, 512}, 1, 1 << 20),
                  integer_param("positions", "positions of a sequence's cache", {24, 128, 2048}, 2, 1 << 20),
                  integer_param("sequences", "sequences that decode, per stream", {2, 2, 2}, 1, 1024),
                  integer_param("tokens", "decode steps per iteration", {4, 4, 8}, 2, 4096),
              },
          .precision = Precision::fp16,
          .roles = {"prefill", "decode"},
          .build = build_model<Server>};
}

}  // namespace weir::workload_list
