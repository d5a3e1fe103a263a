#include "step/workload/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernel/attention.h"
#include "kernel/chain.h"
#include "kernel/gemm.h"
#include "step/workload/params.h"

namespace weir {
namespace {

constexpr float kEpsilon = 1e-5f;  // of layer normalisation

std::string nearest_multiples(std::int64_t value, std::int64_t by) {
  const std::int64_t below = value / by * by;
  return below == 0 ? fmt::format("{}", by) : fmt::format("{} or {}", below, below + by);
}

}  // namespace

std::vector<RoleLanes> divide_streams(int stream_count, std::initializer_list<int> shares) {
  const int total = std::accumulate(shares.begin(), shares.end(), 0);
  std::vector<RoleLanes> lanes;
  const int roles = static_cast<int>(shares.size());
  if (stream_count < roles) {
    for (int i = 0; i < roles; ++i) lanes.push_back({i * stream_count / roles, 1, static_cast<std::uint8_t>(i), 0});
    return lanes;
  }
  int first = 0, seen = 0, left = roles;
  for (const int share : shares) {
    seen += share;
    --left;
    const int end = std::clamp((stream_count * seen + total - 1) / total, first + 1, stream_count - left);
    lanes.push_back({first, end - first, static_cast<std::uint8_t>(lanes.size()), 0});
    first = end;
  }
  return lanes;
}

Part part_of(std::int64_t total, std::int64_t parts, std::int64_t index) {
  const std::int64_t begin = total * index / parts;
  return {begin, total * (index + 1) / parts - begin};
}

void require_multiple(const char* what, std::int64_t value, const char* by_what, std::int64_t by) {
  if (value % by == 0) return;
  reject_param(what, value, fmt::format("{} = {} does not divide it", by_what, by),
               fmt::format("Use {}={}, or another {}.", what, nearest_multiples(value, by), by_what));
}

void require_multiple_of(const char* what, std::int64_t value, const char* reason, std::int64_t by) {
  if (value % by == 0) return;
  reject_param(what, value, fmt::format("it is cut into {} {}", by, reason),
               fmt::format("Use {}={}.", what, nearest_multiples(value, by)));
}

Operand Layers::weights(std::int64_t rows, std::int64_t columns) {
  return {
      step_.uniform(type(), static_cast<std::uint64_t>(rows * columns), std::sqrt(3.0f / static_cast<float>(rows)))};
}

Operand Layers::launch(std::string_view kernel, Lane lane, const KernelShape& shape,
                       std::initializer_list<Operand> inputs, Operand out) {
  std::vector<Operand> operands(inputs);
  operands.push_back(out);
  step_.launch(kernel, lane, shape, operands);
  return out;
}

Layers::Gain Layers::gain(std::int64_t columns) {
  for (const Gain& known : gains_)
    if (known.columns == columns) return known;
  const auto count = static_cast<std::uint64_t>(columns);
  gains_.push_back({columns, {step_.constant(type(), count, 1)}, {step_.constant(type(), count, 0)}});
  return gains_.back();
}

Operand Layers::gemm(Lane lane, Operand a, Operand b, const Product& p, To to) {
  return launch("gemm", lane,
                shape({p.m, p.n, p.k, gemm_flags(p.transposes_a, p.transposes_b, p.batch)}, {p.alpha, p.beta}), {a, b},
                place(to, p.batch * p.m * p.n));
}

Operand Layers::gelu(Lane lane, Operand x, std::int64_t count, To to) {
  return launch("gelu", lane, shape({count}), {x}, place(to, count));
}

Operand Layers::gelu_backward(Lane lane, Operand x, Operand dy, std::int64_t count, To to) {
  return launch("gelu_backward", lane, shape({count}), {x, dy}, place(to, count));
}

Operand Layers::relu(Lane lane, Operand x, std::int64_t count, To to) {
  return launch("chain", lane, shape({count, chain_ops({ChainOp::relu})}), {x}, place(to, count));
}

Operand Layers::layer_norm(Lane lane, Operand x, std::int64_t rows, std::int64_t columns, To to) {
  const Operand out = place(to, rows * columns);
  const Gain g = gain(columns);
  return launch("layer_norm", lane, shape({rows, columns}, {kEpsilon}), {x, g.gamma, g.beta}, out);
}

Operand Layers::layer_norm_backward(Lane lane, Operand x, Operand dy, std::int64_t rows, std::int64_t columns, To to,
                                    To stats) {
  const Operand dx = place(to, rows * columns);
  const Operand kept = stats ? *stats : Operand{step_.output(ElementType::f32, static_cast<std::uint64_t>(2 * rows))};
  step_.launch("layer_norm_backward", lane, shape({rows, columns}, {kEpsilon}), {x, gain(columns).gamma, dy, dx, kept});
  return dx;
}

Operand Layers::add(Lane lane, Operand a, Operand b, std::int64_t count, float scale_a, float scale_b, To to) {
  return launch("add", lane, shape({1, count, 0}, {scale_a, scale_b}), {a, b}, place(to, count));
}

Operand Layers::sum(Lane lane, Operand in, std::int64_t parts, std::int64_t count, std::int64_t stride, float scale,
                    To to) {
  return launch("sum_rows", lane, shape({1, parts, count, stride}, {scale}), {in}, place(to, count));
}

Operand Layers::transpose(Lane lane, Operand x, std::int64_t rows, std::int64_t columns, std::int64_t width,
                          std::int64_t batch, To to) {
  return launch("transpose", lane, shape({batch, rows, columns, width}), {x},
                place(to, batch * rows * columns * width));
}

Operand Layers::softmax(Lane lane, Operand x, std::int64_t rows, std::int64_t columns, bool is_causal, To to) {
  return launch("softmax", lane, shape({rows, columns, is_causal ? 1 : 0}), {x}, place(to, rows * columns));
}

Operand Layers::softmax_backward(Lane lane, Operand p, Operand dp, std::int64_t rows, std::int64_t columns, To to) {
  return launch("softmax_backward", lane, shape({rows, columns}), {p, dp}, place(to, rows * columns));
}

Operand Layers::gather(Lane lane, Operand table, std::int64_t table_rows, Operand indices, std::int64_t count,
                       std::int64_t width, To to) {
  return launch("gather", lane, shape({count, width, table_rows}), {table, indices}, place(to, count * width));
}

Operand Layers::arg_max(Lane lane, Operand scores, std::int64_t rows, std::int64_t columns, To to) {
  return launch("arg_max", lane, shape({rows, columns}), {scores}, to ? *to : integers_output(rows));
}

Operand Layers::attention(Lane lane, Operand q, Operand keys, Operand values, Operand lengths, std::int64_t sequences,
                          std::int64_t queries, std::int64_t positions, std::int64_t heads, std::int64_t head_dim,
                          To to) {
  return launch("attention", lane, shape({sequences, queries, positions, heads_of(heads, head_dim)}),
                {q, keys, values, lengths}, place(to, sequences * queries * heads * head_dim));
}

void Layers::cache_write(Lane lane, Operand fresh, Operand slots, Operand lengths, std::int64_t sequences,
                         std::int64_t queries, std::int64_t positions, std::int64_t width, std::int64_t slot_count,
                         Operand cache) {
  step_.launch("cache_write", lane, shape({sequences, queries, positions, width}, {static_cast<float>(slot_count)}),
               {fresh, slots, lengths, cache});
}

Operand Layers::dropout(Lane lane, Operand x, const Dropout& drop) {
  if (drop.probability <= 0) return x;
  return launch(
      "dropout", lane,
      shape({drop.rows, drop.columns, drop.stride, drop.first}, {drop.probability, 1 / (1 - drop.probability)}),
      {x, drop.done, drop.key}, output(drop.rows * drop.columns));
}

Operand Layers::increase(Lane lane, Operand in, std::int64_t count, std::int64_t delta, To to) {
  return launch("increase", lane, {.type = ElementType::i32, .dims = {count, delta}, .scalars = {}}, {in},
                to ? *to : integers_output(count));
}

}  // namespace weir
