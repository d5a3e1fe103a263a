#include "step/workload/decoder.h"

#include <fmt/format.h>

#include "kernel/attention.h"
#include "step/workload/params.h"

namespace weir {

Decoder::Decoder(Layers& layers, const Size& size) : layers_(layers), size_(size) {
  require_multiple(size.hidden_name, size.hidden, size.heads_name, size.heads);
  if (const std::int64_t widest = size.heads * kMaxHeadDim; size.hidden > widest)
    reject_param(size.hidden_name, size.hidden,
                 fmt::format("with {}={} a head has {} elements; {} are possible", size.heads_name, size.heads,
                             size.hidden / size.heads, kMaxHeadDim),
                 fmt::format("Use {}={} or less, or more {}.", size.hidden_name, widest, size.heads_name));
  const std::int64_t h = size.hidden;
  for (std::int64_t i = 0; i < size.layers; ++i)
    blocks_.push_back({layers.weights(h, h), layers.weights(h, h), layers.weights(h, h), layers.weights(h, h),
                       layers.weights(h, 4 * h), layers.weights(4 * h, h)});
  if (size.vocabulary == 0) return;
  embedding_ = layers.weights(h, size.vocabulary);
  head_ = layers.weights(h, size.vocabulary);
}

Operand Decoder::embed(Lane lane, Operand tokens, std::int64_t count) {
  return layers_.gather(lane, embedding_, size_.vocabulary, tokens, count, size_.hidden);
}

Operand Decoder::next_token(Lane lane, Operand hidden, std::int64_t rows) {
  const std::int64_t h = size_.hidden, v = size_.vocabulary;
  const Operand scores = layers_.gemm(lane, layers_.layer_norm(lane, hidden, rows, h), head_, {rows, v, h});
  return layers_.arg_max(lane, scores, rows, v);
}

Decoder::Cache Decoder::cache(std::int64_t slots, std::int64_t positions) {
  Cache cache{slots, positions, {layers_.step().ramp(ElementType::i32, static_cast<std::uint64_t>(slots))}, {}, {}};
  const auto count = static_cast<std::uint64_t>(slots * positions * size_.hidden);
  for (std::int64_t i = 0; i < size_.layers; ++i) {
    cache.keys.push_back({layers_.step().uniform(layers_.type(), count)});
    cache.values.push_back({layers_.step().uniform(layers_.type(), count)});
  }
  return cache;
}

Operand Decoder::forward(Lane lane, Operand x, const Batch& batch, const Cache& cache) {
  const std::int64_t rows = batch.sequences * batch.queries, h = size_.hidden;
  const auto append = [&](Operand fresh, Operand to) {
    layers_.cache_write(lane, fresh, cache.identity, batch.lengths, batch.sequences, batch.queries, cache.positions, h,
                        cache.slots, to);
  };
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const Operand normal = layers_.layer_norm(lane, x, rows, h);
    const Operand query = layers_.gemm(lane, normal, block.query, {rows, h, h});
    append(layers_.gemm(lane, normal, block.key, {rows, h, h}), cache.keys[i]);
    append(layers_.gemm(lane, normal, block.value, {rows, h, h}), cache.values[i]);
    const Operand seen = layers_.attention(lane, query, cache.keys[i], cache.values[i], batch.lengths, batch.sequences,
                                           batch.queries, cache.positions, size_.heads, h / size_.heads);
    x = layers_.add(lane, x, layers_.gemm(lane, seen, block.out, {rows, h, h}), rows * h);
    const Operand up = layers_.gemm(lane, layers_.layer_norm(lane, x, rows, h), block.up, {rows, 4 * h, h});
    const Operand down = layers_.gemm(lane, layers_.gelu(lane, up, rows * 4 * h), block.down, {rows, h, 4 * h});
    x = layers_.add(lane, x, down, rows * h);
  }
  return x;
}

}  // namespace weir
