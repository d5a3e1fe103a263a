#include "step/workload/transformer.h"

#include <cmath>

namespace weir {

Operand TransformerPart::matrix(const Flat& flat, Matrix which) const {
  const std::int64_t square = hidden_ * width_;
  constexpr std::int64_t kBegin[] = {0, 3, 4, 8}, kCount[] = {3, 1, 4, 4};  // in squares
  return {flat.buffer, static_cast<std::uint64_t>(flat.offset + kBegin[which] * square),
          static_cast<std::uint64_t>(kCount[which] * square)};
}

// q, k or v of all heads: [heads][rows][head_dim]
Operand TransformerPart::third(Operand heads, std::int64_t index) const {
  const auto count = static_cast<std::uint64_t>(rows_ * width_);
  return {heads.buffer, static_cast<std::uint64_t>(index) * count, count};
}

void TransformerPart::attend(Lane lane, Operand x, const Flat& parameters, Kept& kept, Operand to) {
  const std::int64_t s = rows_, h = hidden_, w = width_, n = heads_, d = head_dim();
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  kept.normal1 = layers_.layer_norm(lane, x, s, h);
  const Operand qkv = layers_.gemm(lane, kept.normal1, matrix(parameters, kQkv), {s, 3 * w, h});
  kept.heads = layers_.transpose(lane, qkv, s, 3 * n, d);
  const Operand raw = layers_.gemm(lane, third(kept.heads, 0), third(kept.heads, 1),
                                   {.m = s, .n = s, .k = d, .transposes_b = true, .alpha = scale, .batch = n});
  kept.scores = layers_.softmax(lane, raw, n * s, s, true);
  const Operand mixed = layers_.gemm(lane, kept.scores, third(kept.heads, 2), {.m = s, .n = d, .k = s, .batch = n});
  kept.seen = layers_.transpose(lane, mixed, n, s, d);
  layers_.gemm(lane, kept.seen, matrix(parameters, kOut), {s, h, w}, to);
}

void TransformerPart::expand(Lane lane, Operand x, const Flat& parameters, Kept& kept, Operand to) {
  const std::int64_t s = rows_, h = hidden_, w = width_;
  kept.normal2 = layers_.layer_norm(lane, x, s, h);
  kept.up = layers_.gemm(lane, kept.normal2, matrix(parameters, kUp), {s, 4 * w, h});
  kept.active = layers_.gelu(lane, kept.up, s * 4 * w);
  layers_.gemm(lane, kept.active, matrix(parameters, kDown), {s, h, 4 * w}, to);
}

void TransformerPart::expand_backward(Lane lane, Operand dy, const Flat& parameters, const Kept& kept,
                                      const Flat& gradients, Operand to) {
  const std::int64_t s = rows_, h = hidden_, w = width_;
  const Operand d_active =
      layers_.gemm(lane, dy, matrix(parameters, kDown), {.m = s, .n = 4 * w, .k = h, .transposes_b = true});
  const Operand d_up = layers_.gelu_backward(lane, kept.up, d_active, s * 4 * w);
  layers_.gemm(lane, kept.active, dy, {.m = 4 * w, .n = h, .k = s, .transposes_a = true}, matrix(gradients, kDown));
  layers_.gemm(lane, kept.normal2, d_up, {.m = h, .n = 4 * w, .k = s, .transposes_a = true}, matrix(gradients, kUp));
  layers_.gemm(lane, d_up, matrix(parameters, kUp), {.m = s, .n = h, .k = 4 * w, .transposes_b = true}, to);
}

void TransformerPart::attend_backward(Lane lane, Operand dy, const Flat& parameters, const Kept& kept,
                                      const Flat& gradients, Operand to) {
  const std::int64_t s = rows_, h = hidden_, w = width_, n = heads_, d = head_dim();
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  const Operand d_seen =
      layers_.gemm(lane, dy, matrix(parameters, kOut), {.m = s, .n = w, .k = h, .transposes_b = true});
  layers_.gemm(lane, kept.seen, dy, {.m = w, .n = h, .k = s, .transposes_a = true}, matrix(gradients, kOut));
  const Operand d_mixed = layers_.transpose(lane, d_seen, s, n, d);
  const Operand d_scores =
      layers_.gemm(lane, d_mixed, third(kept.heads, 2), {.m = s, .n = s, .k = d, .transposes_b = true, .batch = n});
  const Operand d_raw = layers_.softmax_backward(lane, kept.scores, d_scores, n * s, s);
  const Operand d_heads = layers_.output(3 * s * w);
  layers_.gemm(lane, d_raw, third(kept.heads, 1), {.m = s, .n = d, .k = s, .alpha = scale, .batch = n},
               third(d_heads, 0));
  layers_.gemm(lane, d_raw, third(kept.heads, 0),
               {.m = s, .n = d, .k = s, .transposes_a = true, .alpha = scale, .batch = n}, third(d_heads, 1));
  layers_.gemm(lane, kept.scores, d_mixed, {.m = s, .n = d, .k = s, .transposes_a = true, .batch = n},
               third(d_heads, 2));
  const Operand d_qkv = layers_.transpose(lane, d_heads, 3 * n, s, d);
  layers_.gemm(lane, kept.normal1, d_qkv, {.m = h, .n = 3 * w, .k = s, .transposes_a = true}, matrix(gradients, kQkv));
  layers_.gemm(lane, d_qkv, matrix(parameters, kQkv), {.m = s, .n = h, .k = 3 * w, .transposes_b = true}, to);
}

}  // namespace weir
