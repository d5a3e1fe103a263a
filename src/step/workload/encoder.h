// A pre-norm encoder layer over a batch of short sequences, forward and backward: attention of all tokens to all, and
// an MLP. Rows are [tokens][batch]. Knows matrices and layers, but no shards, ranks or optimizers.
#pragma once

#include "step/workload/layers.h"

namespace weir {

struct EncoderSizes {
  std::int64_t tokens = 1, batch = 1, dim = 1, heads = 1, mlp = 1;
  std::int64_t rows() const { return tokens * batch; }
  std::int64_t head_dim() const { return dim / heads; }
};

// Parameters and gradients are operands of parameter_count() elements with the matrices in this order: query, key,
// value and out [dim][dim], up [dim][mlp], down [mlp][dim].
class EncoderLayer {
 public:
  // Values that forward keeps for backward.
  struct Kept {
    Operand x, normal1, query, key, value, scores, dropped_scores, seen, middle, normal2, up, dropped_active;
  };
  // What is dropped: attention's shares, what attention adds, the MLP's values, what the MLP adds; each draws by a key
  // of its own. A sample's elements are drawn by its number among all of the step, so that no layout changes them.
  struct Dropout {
    float probability = 0;
    Operand done, keys;                   // steps done; four keys
    std::int64_t samples = 1, first = 0;  // all of the step, and the first of this batch
  };

  EncoderLayer(Layers& layers, const EncoderSizes& sizes) : layers_(layers), sizes_(sizes) {}

  static std::int64_t parameter_count(const EncoderSizes& sizes) {
    return 4 * sizes.dim * sizes.dim + 2 * sizes.dim * sizes.mlp;
  }

  // Spreads independent products over the lanes. Returns the input of the next layer.
  Operand forward(const RoleLanes& lanes, Operand x, Operand parameters, Kept& kept, const Dropout& dropout);
  // Gradients become beta times their old value plus this batch's. Returns the gradient of x.
  Operand backward(const RoleLanes& lanes, Operand dy, Operand parameters, const Kept& kept, Operand gradients,
                   float beta, const Dropout& dropout);

 private:
  enum Matrix { kQuery, kKey, kValue, kOut, kUp, kDown };
  Operand matrix(Operand flat, Matrix which) const;
  Operand attend(const RoleLanes& lanes, Operand parameters, Kept& kept, const Dropout& dropout);
  Operand attend_backward(const RoleLanes& lanes, Operand dy, Operand parameters, const Kept& kept, Operand gradients,
                          float beta, const Dropout& dropout);
  Operand expand_backward(const RoleLanes& lanes, Operand dy, Operand parameters, const Kept& kept, Operand gradients,
                          float beta, const Dropout& dropout);
  enum Place { kShares, kAttended, kActive, kExpanded };
  // Of rows of `width`, [tokens][batch].
  Operand drop(Lane lane, Operand x, std::int64_t width, Place place, const Dropout& dropout);
  Operand drop_shares(Lane lane, Operand x, const Dropout& dropout);
  // [tokens][batch][heads][head_dim] to [batch][heads][tokens][head_dim], and back.
  Operand by_head(Lane lane, Operand rows);
  Operand by_token(Lane lane, Operand heads);

  Layers& layers_;
  EncoderSizes sizes_;
};

}  // namespace weir
