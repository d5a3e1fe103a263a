// A mixture of experts: a gate picks two experts for every token, tokens travel to them, and each expert gets as many
// rows as were really routed to it. The device decides; the sizes are unknown when the commands are submitted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernel/ragged_gemm.h"
#include "step/workload/layers.h"
#include "step/workload/list.h"

namespace weir::workload_list {
namespace {

enum MoeRole : std::uint8_t { kRouter, kExpert };

Step build_moe(const Params& params, int stream_count) {
  const std::int64_t tokens = params.integer("batch") * params.integer("sequence");
  const std::int64_t h = params.integer("hidden"), inner = params.integer("inner"), picks = params.integer("picks");
  const std::int64_t ranks = params.ranks.count;
  // Each rank has at least one expert per stream, not counting the router's stream, as far as routing goes; beyond that
  // the tokens of different ranks for the same expert have streams of their own.
  const std::int64_t local =
      std::max<std::int64_t>(params.integer("experts"), std::min<std::int64_t>(stream_count - 1, 256 / ranks));
  const std::int64_t experts = local * ranks;
  if (experts > 256)
    reject(fmt::format("{} ranks of {} experts: routing goes to 256 at most", ranks, local),
           fmt::format("Use --param experts={}, or fewer ranks.", 256 / ranks));
  if (picks > experts)
    reject_param("picks", picks, fmt::format("there are {} experts", experts), "A token picks each at most once.");
  const std::int64_t capacity = tokens;  // nothing is dropped: a token picks an expert at most once
  // A single stream does both.
  const int expert_streams = std::max(1, stream_count - 1);
  const RoleLanes router{0, 1, kRouter, 0}, streams{stream_count - expert_streams, expert_streams, kExpert, 0};
  const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };

  StepBuilder step(params.seed, params.ranks);
  Layers layers(step, params.precision);
  const ElementType type = layers.type();
  const auto shape = [&](std::array<std::int64_t, kMaxDims> dims, std::array<float, kMaxScalars> scalars = {}) {
    return KernelShape{.type = type, .precision = params.precision, .dims = dims, .scalars = scalars};
  };

  // The gate. A slope over the experts makes some more popular than others.
  const Lane lane = router[0];
  const Operand x{step.sharded(type, count(tokens * h))};
  const Operand logits = layers.gemm(lane, x, layers.weights(h, experts), {tokens, experts, h});
  const auto skew = static_cast<float>(params.number("skew"));
  const Operand slope{step.ramp(type, count(experts), skew, -0.5f * skew)};
  const Operand scores = layers.output(tokens * experts);
  step.launch("add", lane, shape({tokens, experts, 1}, {1, 1}), {logits, slope, scores});
  const Operand values = layers.output(tokens * picks), ids = layers.integers_output(tokens * picks);
  step.launch("top_k", lane, shape({tokens, experts, picks}), {scores, values, ids});
  const Operand weights = layers.softmax(lane, values, tokens, picks);

  // First the destinations, then the tokens themselves.
  const Operand offsets = layers.integers_output(experts + 1), slots = layers.integers_output(tokens * picks);
  step.launch("route", lane, {.type = ElementType::i32, .dims = {tokens * picks, experts, picks}, .scalars = {}},
              {ids, offsets, slots, layers.integers_output(tokens * picks)});
  const Operand sent = layers.output(experts * capacity * h);
  step.launch("dispatch", lane, shape({tokens, h, picks, capacity}, {static_cast<float>(experts)}),
              {x, ids, slots, sent});
  Operand received = sent, all_offsets = offsets;
  if (ranks > 1) {
    received = layers.output(experts * capacity * h);
    step.collective(CollectiveOp::all_to_all, lane, sent, received);
    all_offsets = layers.integers_output(ranks * (experts + 1));
    step.collective(CollectiveOp::all_gather, lane, offsets, all_offsets);
  }

  // Every local expert processes what each rank has sent to it.
  const Operand made = layers.output(experts * capacity * h);
  const auto expected = static_cast<float>(tokens * picks) / static_cast<float>(experts);
  for (std::int64_t e = 0; e < local; ++e) {
    const Operand up{step.sharded(type, count(h * inner), std::sqrt(3.0f / static_cast<float>(h)))};
    const Operand down{step.sharded(type, count(inner * h), std::sqrt(3.0f / static_cast<float>(inner)))};
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t first = rank * (experts + 1) + params.ranks.rank * local + e;
      const Operand range{all_offsets.buffer, count(first), 2};
      const auto rows = [&](Operand all) {
        return Operand{all.buffer, count((rank * local + e) * capacity * h), count(capacity * h)};
      };
      const auto launch = [&](Operand in, Operand matrix, Operand out, std::int64_t n, std::int64_t k, bool has_gelu) {
        step.launch(
            "ragged_gemm", streams[rank * local + e],
            shape({capacity, n, k, ragged_expert(0, 1, false, has_gelu)}, {expected, static_cast<float>(capacity)}),
            {in, matrix, range, out});
      };
      const Operand between = layers.output(capacity * inner);
      launch(rows(received), up, between, inner, h, true);
      launch(between, down, rows(made), h, inner, false);
    }
  }
  Operand back = made;
  if (ranks > 1) {
    back = layers.output(experts * capacity * h);
    step.collective(CollectiveOp::all_to_all, lane, made, back);
  }
  step.launch("combine", lane, shape({tokens, h, picks, capacity}, {static_cast<float>(experts)}),
              {back, ids, slots, weights, layers.output(tokens * h)});
  step.work(static_cast<double>(tokens));
  return std::move(step).seal(stream_count);
}

}  // namespace

Workload moe() {
  return {
      .name = "moe",
      .summary = "Experts with unequal loads after real top-k routing",
      .category = "distributed",
      .priority = 1,
      .unit = "tokens/s",
      .scaling = Scaling::divided,
      .shows = "8-64 expert streams with unequal load after real top-k routing",
      .streams = {1, 16, kMaxStreams},
      .params =
          {
              integer_param("batch", "samples", {2, 4, 4}, 1, 4096),
              integer_param("sequence", "tokens of a sample", {8, 32, 512}, 1, 65536),
              integer_param("hidden", "width of a token", {8, 64, 1024}, 1, 32768),
              integer_param("inner", "width inside an expert", {16, 256, 4096}, 1, 131072),
              integer_param("experts", "experts per rank; at least one per stream but the first", {8, 8, 8}, 2, 256),
              integer_param("picks", "experts that a token goes to", {2, 2, 2}, 1, 8),
              number_param("skew", "how much more popular the last expert is than the first, in logits", 1.0, 0, 20),
          },
      .roles = {"router", "expert"},
      .build = build_moe};
}

}  // namespace weir::workload_list
