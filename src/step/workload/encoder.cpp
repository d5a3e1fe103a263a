#include "step/workload/encoder.h"

#include <cmath>

namespace weir {

Operand EncoderLayer::matrix(Operand flat, Matrix which) const {
  const auto square = static_cast<std::uint64_t>(sizes_.dim * sizes_.dim);
  const auto wide = static_cast<std::uint64_t>(sizes_.dim * sizes_.mlp);
  const auto before = static_cast<std::uint64_t>(which);
  const std::uint64_t offset = which <= kUp ? before * square : 4 * square + wide;
  return {flat.buffer, flat.offset + offset, which < kUp ? square : wide};
}

Operand EncoderLayer::by_head(Lane lane, Operand rows) {
  return layers_.transpose(lane, rows, sizes_.tokens, sizes_.batch * sizes_.heads, sizes_.head_dim());
}
Operand EncoderLayer::by_token(Lane lane, Operand heads) {
  return layers_.transpose(lane, heads, sizes_.batch * sizes_.heads, sizes_.tokens, sizes_.head_dim());
}

Operand EncoderLayer::drop(Lane lane, Operand x, std::int64_t width, Place place, const Dropout& dropout) {
  return layers_.dropout(lane, x,
                         {dropout.probability, dropout.done,
                          Operand{dropout.keys.buffer, dropout.keys.offset + static_cast<std::uint64_t>(place), 1},
                          sizes_.tokens, sizes_.batch * width, dropout.samples * width, dropout.first * width});
}
// [batch][heads][tokens][tokens]
Operand EncoderLayer::drop_shares(Lane lane, Operand x, const Dropout& dropout) {
  const std::int64_t each = sizes_.heads * sizes_.tokens * sizes_.tokens;
  return layers_.dropout(
      lane, x,
      {dropout.probability, dropout.done, Operand{dropout.keys.buffer, dropout.keys.offset + kShares, 1}, 1,
       sizes_.batch * each, 0, dropout.first * each});
}

Operand EncoderLayer::attend(const RoleLanes& lanes, Operand parameters, Kept& kept, const Dropout& dropout) {
  const std::int64_t s = sizes_.tokens, d = sizes_.head_dim(), n = sizes_.batch * sizes_.heads;
  const std::int64_t rows = sizes_.rows(), dim = sizes_.dim;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  kept.normal1 = layers_.layer_norm(lanes[0], kept.x, rows, dim);
  Operand* const projected[] = {&kept.query, &kept.key, &kept.value};
  for (const Matrix which : {kQuery, kKey, kValue}) {
    const Operand product = layers_.gemm(lanes[which], kept.normal1, matrix(parameters, which), {rows, dim, dim});
    *projected[which] = by_head(lanes[which], product);
  }
  const Operand raw = layers_.gemm(lanes[0], kept.query, kept.key,
                                   {.m = s, .n = s, .k = d, .transposes_b = true, .alpha = scale, .batch = n});
  kept.scores = layers_.softmax(lanes[0], raw, n * s, s);
  kept.dropped_scores = drop_shares(lanes[0], kept.scores, dropout);
  const Operand mixed = layers_.gemm(lanes[0], kept.dropped_scores, kept.value, {.m = s, .n = d, .k = s, .batch = n});
  kept.seen = by_token(lanes[0], mixed);
  const Operand out = layers_.gemm(lanes[0], kept.seen, matrix(parameters, kOut), {rows, dim, dim});
  return drop(lanes[0], out, dim, kAttended, dropout);
}

Operand EncoderLayer::forward(const RoleLanes& lanes, Operand x, Operand parameters, Kept& kept,
                              const Dropout& dropout) {
  const std::int64_t rows = sizes_.rows(), dim = sizes_.dim, mlp = sizes_.mlp;
  const Lane lane = lanes[0];
  kept.x = x;
  kept.middle = layers_.add(lane, x, attend(lanes, parameters, kept, dropout), rows * dim);
  kept.normal2 = layers_.layer_norm(lane, kept.middle, rows, dim);
  kept.up = layers_.gemm(lane, kept.normal2, matrix(parameters, kUp), {rows, mlp, dim});
  kept.dropped_active = drop(lane, layers_.gelu(lane, kept.up, rows * mlp), mlp, kActive, dropout);
  const Operand down = layers_.gemm(lane, kept.dropped_active, matrix(parameters, kDown), {rows, dim, mlp});
  return layers_.add(lane, kept.middle, drop(lane, down, dim, kExpanded, dropout), rows * dim);
}

// Down to the normalised input of the MLP.
Operand EncoderLayer::expand_backward(const RoleLanes& lanes, Operand dy, Operand parameters, const Kept& kept,
                                      Operand gradients, float beta, const Dropout& dropout) {
  const std::int64_t rows = sizes_.rows(), dim = sizes_.dim, mlp = sizes_.mlp;
  dy = drop(lanes[0], dy, dim, kExpanded, dropout);
  const Operand d_active =
      drop(lanes[0],
           layers_.gemm(lanes[0], dy, matrix(parameters, kDown), {.m = rows, .n = mlp, .k = dim, .transposes_b = true}),
           mlp, kActive, dropout);
  layers_.gemm(lanes[1], kept.dropped_active, dy, {.m = mlp, .n = dim, .k = rows, .transposes_a = true, .beta = beta},
               matrix(gradients, kDown));
  const Operand d_up = layers_.gelu_backward(lanes[0], kept.up, d_active, rows * mlp);
  layers_.gemm(lanes[2], kept.normal2, d_up, {.m = dim, .n = mlp, .k = rows, .transposes_a = true, .beta = beta},
               matrix(gradients, kUp));
  return layers_.gemm(lanes[0], d_up, matrix(parameters, kUp), {.m = rows, .n = dim, .k = mlp, .transposes_b = true});
}

// Down to the normalised input of attention.
Operand EncoderLayer::attend_backward(const RoleLanes& lanes, Operand dy, Operand parameters, const Kept& kept,
                                      Operand gradients, float beta, const Dropout& dropout) {
  const std::int64_t s = sizes_.tokens, d = sizes_.head_dim(), n = sizes_.batch * sizes_.heads;
  const std::int64_t rows = sizes_.rows(), dim = sizes_.dim;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  dy = drop(lanes[0], dy, dim, kAttended, dropout);
  const Operand d_seen =
      layers_.gemm(lanes[0], dy, matrix(parameters, kOut), {.m = rows, .n = dim, .k = dim, .transposes_b = true});
  layers_.gemm(lanes[3], kept.seen, dy, {.m = dim, .n = dim, .k = rows, .transposes_a = true, .beta = beta},
               matrix(gradients, kOut));
  const Operand d_mixed = by_head(lanes[0], d_seen);
  const Operand d_scores = drop_shares(
      lanes[0], layers_.gemm(lanes[0], d_mixed, kept.value, {.m = s, .n = s, .k = d, .transposes_b = true, .batch = n}),
      dropout);
  const Operand d_raw = layers_.softmax_backward(lanes[0], kept.scores, d_scores, n * s, s);
  const Operand d_heads[] = {
      layers_.gemm(lanes[0], d_raw, kept.key, {.m = s, .n = d, .k = s, .alpha = scale, .batch = n}),
      layers_.gemm(lanes[1], d_raw, kept.query,
                   {.m = s, .n = d, .k = s, .transposes_a = true, .alpha = scale, .batch = n}),
      layers_.gemm(lanes[2], kept.dropped_scores, d_mixed, {.m = s, .n = d, .k = s, .transposes_a = true, .batch = n})};
  // Each has a buffer of its own and a sum follows, because a product that adds to another result cannot be verified
  // without recomputing both.
  const Operand parts = layers_.output(3 * rows * dim);
  const auto count = static_cast<std::uint64_t>(rows * dim);
  for (const Matrix which : {kQuery, kKey, kValue}) {
    const Lane lane = lanes[which];
    const Operand d_product = by_token(lane, d_heads[which]);
    layers_.gemm(lane, kept.normal1, d_product, {.m = dim, .n = dim, .k = rows, .transposes_a = true, .beta = beta},
                 matrix(gradients, which));
    layers_.gemm(lane, d_product, matrix(parameters, which), {.m = rows, .n = dim, .k = dim, .transposes_b = true},
                 Operand{parts.buffer, static_cast<std::uint64_t>(which) * count, count});
  }
  return layers_.sum(lanes[0], parts, 3, rows * dim, rows * dim);
}

Operand EncoderLayer::backward(const RoleLanes& lanes, Operand dy, Operand parameters, const Kept& kept,
                               Operand gradients, float beta, const Dropout& dropout) {
  const std::int64_t rows = sizes_.rows(), dim = sizes_.dim;
  const Operand d_normal2 = expand_backward(lanes, dy, parameters, kept, gradients, beta, dropout);
  const Operand d_middle =
      layers_.add(lanes[0], dy, layers_.layer_norm_backward(lanes[0], kept.middle, d_normal2, rows, dim), rows * dim);
  const Operand d_normal1 = attend_backward(lanes, d_middle, parameters, kept, gradients, beta, dropout);
  return layers_.add(lanes[0], d_middle, layers_.layer_norm_backward(lanes[0], kept.x, d_normal1, rows, dim),
                     rows * dim);
}

}  // namespace weir
