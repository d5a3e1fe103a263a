// Building blocks of models in terms of catalogue kernels: each call launches on the given lane and returns the operand
// that it wrote. Also divides streams among roles. Knows no workload.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "kernel/numeric.h"
#include "step/step.h"

namespace weir {

// Streams [first, first + count) for one role; item i goes to stream i modulo count.
struct RoleLanes {
  int first = 0, count = 1;
  std::uint8_t role = 0;
  std::int8_t priority = 0;
  Lane operator[](std::int64_t item) const {
    return {static_cast<StreamId>(first + static_cast<int>(item % count)), role, priority};
  }
};

// One role per share, in order, numbered from 0; streams in proportion to the shares, at least one per role. With fewer
// streams than roles, neighbouring roles share a stream.
std::vector<RoleLanes> divide_streams(int stream_count, std::initializer_list<int> shares);

// Part `index` of `total` items cut into `parts` whose sizes differ by at most one.
struct Part {
  std::int64_t begin = 0, count = 0;
};
Part part_of(std::int64_t total, std::int64_t parts, std::int64_t index);

// Rejects `value` if `by` does not divide it; `what` and `by_what` name the parameters: "hidden", "heads".
void require_multiple(const char* what, std::int64_t value, const char* by_what, std::int64_t by);
// The same for a fixed divisor: "gradient shards".
void require_multiple_of(const char* what, std::int64_t value, const char* reason, std::int64_t by);

// A matrix product's sizes and options: C[m,n] = alpha op(A) op(B) + beta C, `batch` of them, contiguous.
struct Product {
  std::int64_t m = 1, n = 1, k = 1;
  bool transposes_a = false, transposes_b = false;
  float alpha = 1, beta = 0;
  std::int64_t batch = 1;
};

class Layers {
 public:
  Layers(StepBuilder& step, Precision precision) : step_(step), precision_(precision) {}
  ElementType type() const { return storage_of(precision_); }
  StepBuilder& step() { return step_; }
  KernelShape shape(std::array<std::int64_t, kMaxDims> dims, std::array<float, kMaxScalars> scalars = {}) const {
    return {.type = type(), .precision = precision_, .dims = dims, .scalars = scalars};
  }

  // Weights that preserve the variance of their input; the same on every rank.
  Operand weights(std::int64_t rows, std::int64_t columns);
  Operand output(std::int64_t count) { return {step_.output(type(), static_cast<std::uint64_t>(count))}; }
  Operand integers_output(std::int64_t count) {
    return {step_.output(ElementType::i32, static_cast<std::uint64_t>(count))};
  }

  // The result goes to `to`, or to a new buffer if it is not given.
  using To = std::optional<Operand>;
  Operand gemm(Lane lane, Operand a, Operand b, const Product& product, To to = {});
  Operand gelu(Lane lane, Operand x, std::int64_t count, To to = {});
  Operand gelu_backward(Lane lane, Operand x, Operand dy, std::int64_t count, To to = {});
  Operand relu(Lane lane, Operand x, std::int64_t count, To to = {});
  // Gain 1 and shift 0, shared by all calls of the same width.
  Operand layer_norm(Lane lane, Operand x, std::int64_t rows, std::int64_t columns, To to = {});
  Operand layer_norm_backward(Lane lane, Operand x, Operand dy, std::int64_t rows, std::int64_t columns, To to = {},
                              To stats = {});
  Operand add(Lane lane, Operand a, Operand b, std::int64_t count, float scale_a = 1, float scale_b = 1, To to = {});
  // out[i] = scale * the sum of `parts` vectors of `count`, `stride` apart.
  Operand sum(Lane lane, Operand in, std::int64_t parts, std::int64_t count, std::int64_t stride, float scale = 1,
              To to = {});
  // [batch][rows][columns][width] -> [batch][columns][rows][width]
  Operand transpose(Lane lane, Operand x, std::int64_t rows, std::int64_t columns, std::int64_t width,
                    std::int64_t batch = 1, To to = {});
  Operand softmax(Lane lane, Operand x, std::int64_t rows, std::int64_t columns, bool is_causal = false, To to = {});
  Operand softmax_backward(Lane lane, Operand p, Operand dp, std::int64_t rows, std::int64_t columns, To to = {});
  // Rows of a table by i32 index.
  Operand gather(Lane lane, Operand table, std::int64_t table_rows, Operand indices, std::int64_t count,
                 std::int64_t width, To to = {});
  Operand arg_max(Lane lane, Operand scores, std::int64_t rows, std::int64_t columns, To to = {});
  // Attention of `queries` new positions per sequence over its whole cache.
  Operand attention(Lane lane, Operand q, Operand keys, Operand values, Operand lengths, std::int64_t sequences,
                    std::int64_t queries, std::int64_t positions, std::int64_t heads, std::int64_t head_dim,
                    To to = {});
  // Writes `fresh` [sequences][queries][width] into a cache of `slot_count` slots, ending at position lengths[s] - 1.
  void cache_write(Lane lane, Operand fresh, Operand slots, Operand lengths, std::int64_t sequences,
                   std::int64_t queries, std::int64_t positions, std::int64_t width, std::int64_t slot_count,
                   Operand cache);
  // Which elements are dropped follows from the number of steps done (f32), a key (i32) and the element's index: with
  // rows of `columns`, of which row r begins at r * stride + first of the whole. Returns x if the probability is 0.
  struct Dropout {
    float probability = 0;
    Operand done, key;
    std::int64_t rows = 1, columns = 1, stride = 0, first = 0;
  };
  Operand dropout(Lane lane, Operand x, const Dropout& drop);
  // i32: in + delta.
  Operand increase(Lane lane, Operand in, std::int64_t count, std::int64_t delta, To to = {});

 private:
  // Returns `out`, which is the last operand.
  Operand launch(std::string_view kernel, Lane lane, const KernelShape& shape, std::initializer_list<Operand> inputs,
                 Operand out);
  Operand place(To to, std::int64_t count) { return to ? *to : output(count); }
  struct Gain {
    std::int64_t columns;
    Operand gamma, beta;
  };
  Gain gain(std::int64_t columns);

  StepBuilder& step_;
  Precision precision_;
  std::vector<Gain> gains_;
};

}  // namespace weir
