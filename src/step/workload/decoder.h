// A decoder-only transformer with a KV cache, for inference workloads. Weights are shared by all requests; every
// position of the cache that a query may see is really read. Knows layers, but no workload and no stream.
#pragma once

#include <vector>

#include "step/workload/layers.h"

namespace weir {

class Decoder {
 public:
  struct Size {
    std::int64_t layers = 1, hidden = 1, heads = 1;
    std::int64_t vocabulary = 0;                                // 0: the caller handles tokens
    const char *hidden_name = "hidden", *heads_name = "heads";  // of the workload's parameters
  };
  // Keys and values of `slots` sequences, [slots][positions][hidden] for each layer.
  struct Cache {
    std::int64_t slots = 1, positions = 1;
    Operand identity;  // slot s of the cache belongs to sequence s
    std::vector<Operand> keys, values;
  };
  // Current tokens: `queries` for each of `sequences`, the last of them at position lengths[s] - 1.
  struct Batch {
    std::int64_t sequences = 1, queries = 1;
    Operand lengths;
  };

  Decoder(Layers& layers, const Size& size);

  // A cache whose positions already hold a context.
  Cache cache(std::int64_t slots, std::int64_t positions);
  // Appends the tokens' keys and values to the cache and attends over all of it; x and the result are
  // [sequences * queries][hidden].
  Operand forward(Lane lane, Operand x, const Batch& batch, const Cache& cache);

  // Tokens in and out: their rows of the embedding, and the best-scoring token after each row of `hidden`.
  Operand embed(Lane lane, Operand tokens, std::int64_t count);
  Operand next_token(Lane lane, Operand hidden, std::int64_t rows);

  std::int64_t hidden() const { return size_.hidden; }

 private:
  struct Block {
    Operand query, key, value, out, up, down;
  };
  Layers& layers_;
  Size size_;
  std::vector<Block> blocks_;
  Operand embedding_, head_;
};

}  // namespace weir
