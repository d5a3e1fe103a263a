// One tensor-parallel part of a transformer block, forward and backward: its share of the heads and of the MLP. Knows
// matrices and layers, but no shards, replicas or streams.
#pragma once

#include "step/workload/layers.h"

namespace weir {

class TransformerPart {
 public:
  // Matrices of a part, in this order in a flat parameter (or gradient): qkv [hidden][3 width], out [width][hidden], up
  // [hidden][4 width], down [4 width][hidden].
  struct Flat {
    BufferId buffer = 0;
    std::int64_t offset = 0;
  };
  // Values that forward keeps for backward.
  struct Kept {
    Operand normal1, heads, scores, seen, normal2, up, active;
  };

  // `rows` tokens of one sequence; `heads` belong to the part, `width` is their number of columns.
  TransformerPart(Layers& layers, std::int64_t rows, std::int64_t hidden, std::int64_t width, std::int64_t heads)
      : layers_(layers), rows_(rows), hidden_(hidden), width_(width), heads_(heads) {}

  static std::int64_t flat_count(std::int64_t hidden, std::int64_t width) { return 12 * hidden * width; }

  // The part's share of what attention and MLP add to x, [rows][hidden].
  void attend(Lane lane, Operand x, const Flat& parameters, Kept& kept, Operand to);
  void expand(Lane lane, Operand x, const Flat& parameters, Kept& kept, Operand to);
  // From the gradient dy of those shares to the gradients of the matrices, and to the part's share of the gradient of
  // the normalised input.
  void attend_backward(Lane lane, Operand dy, const Flat& parameters, const Kept& kept, const Flat& gradients,
                       Operand to);
  void expand_backward(Lane lane, Operand dy, const Flat& parameters, const Kept& kept, const Flat& gradients,
                       Operand to);

 private:
  enum Matrix { kQkv, kOut, kUp, kDown };
  Operand matrix(const Flat& flat, Matrix which) const;
  Operand third(Operand heads, std::int64_t index) const;
  std::int64_t head_dim() const { return width_ / heads_; }

  Layers& layers_;
  std::int64_t rows_, hidden_, width_, heads_;
};

}  // namespace weir
