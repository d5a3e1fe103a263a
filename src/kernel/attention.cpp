// Scaled dot-product attention of new queries over cached keys and values, causal, with a length per sequence.
#include "kernel/attention.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// One launch with named sizes.
struct Heads {
  explicit Heads(const KernelShape& shape)
      : sequences(shape.dims[0]),
        queries(shape.dims[1]),
        positions(shape.dims[2]),
        heads(heads_in(shape.dims[3])),
        head_dim(head_dim_in(shape.dims[3])),
        width(heads * head_dim) {}

  // How many positions query i of a sequence sees: its own and those before it.
  std::int64_t seen(std::int64_t length, std::int64_t i) const {
    if (length <= 0) return 0;
    return std::max<std::int64_t>(0, std::min(length, positions) - queries + i + 1);
  }

  std::int64_t sequences, queries, positions, heads, head_dim, width;
};

// A block is a head of a sequence and some of its queries, which share the keys and values that it converts to float.
constexpr std::int64_t kQueriesPerBlock = 64;

std::uint32_t blocks(const KernelShape& shape) {
  const Heads size(shape);
  return static_cast<std::uint32_t>(size.sequences * size.heads) * block_count(size.queries, kQueriesPerBlock);
}

template <class T>
void attend(const KernelCall& call, const Heads& size, std::int64_t sequence, std::int64_t head, Range queries) {
  const std::int64_t length = operand<const std::int32_t>(call, 3)[sequence];
  const std::int64_t most = size.seen(length, queries.end - 1), dim = size.head_dim;
  const T* const q = operand<const T>(call, 0) + sequence * size.queries * size.width + head * dim;
  const T* const from = operand<const T>(call, 1) + sequence * size.positions * size.width + head * dim;
  const T* const from_values = operand<const T>(call, 2) + sequence * size.positions * size.width + head * dim;
  T* const out = operand<T>(call, 4) + sequence * size.queries * size.width + head * dim;

  // Keys are stored transposed, so that both products below run along memory.
  float* const keys = scratch(2 * dim * most + most + 2 * dim);
  float* const values = keys + dim * most;
  float* const scores = values + dim * most;
  float* const query = scores + most;
  float* const sums = query + dim;
  for (std::int64_t p = 0; p < most; ++p) {
    for (std::int64_t d = 0; d < dim; ++d) keys[d * most + p] = to_float(from[p * size.width + d]);
    load_floats(from_values + p * size.width, values + p * dim, dim);
  }
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    const std::int64_t seen = size.seen(length, i);
    std::fill(sums, sums + dim, 0.0f);
    std::fill(scores, scores + seen, 0.0f);
    load_floats(q + i * size.width, query, dim);
    for (std::int64_t d = 0; d < dim; ++d) {
      const float factor = query[d] * scale;
      const float* const column = keys + d * most;
      for (std::int64_t p = 0; p < seen; ++p) scores[p] += factor * column[p];
    }
    const float largest = seen == 0 ? 0 : *std::max_element(scores, scores + seen);
    for (std::int64_t p = 0; p < seen; ++p) scores[p] = std::exp(scores[p] - largest);
    const float total = sum_of(seen, [scores](std::int64_t p) { return scores[p]; });
    for (std::int64_t p = 0; p < seen; ++p) {
      const float* const row = values + p * dim;
      for (std::int64_t d = 0; d < dim; ++d) sums[d] += scores[p] * row[d];
    }
    for (std::int64_t d = 0; d < dim; ++d) out[i * size.width + d] = from_float<T>(seen == 0 ? 0.0f : sums[d] / total);
  }
}

void run_block(const KernelCall& call, std::uint32_t block) {
  const Heads size(call.shape);
  const std::uint32_t chunks = block_count(size.queries, kQueriesPerBlock);
  const Range queries = block_range(size.queries, kQueriesPerBlock, block % chunks);
  const std::int64_t pair = block / chunks;
  with_float_type(call.shape.type,
                  [&]<class T>(T*) { attend<T>(call, size, pair / size.heads, pair % size.heads, queries); });
}

void reference(const KernelCall& call) {
  const Heads size(call.shape);
  const double root = std::sqrt(static_cast<double>(size.head_dim));
  with_float_type(call.shape.type, [&]<class T>(T*) {
    std::vector<double> weights(static_cast<std::size_t>(size.positions));
    std::vector<double> sums(static_cast<std::size_t>(size.head_dim));
    for (std::int64_t row = 0; row < size.sequences * size.queries; ++row) {
      const std::int64_t s = row / size.queries, i = row % size.queries;
      const std::int64_t length = std::min<std::int64_t>(size.positions, operand<const std::int32_t>(call, 3)[s]);
      const std::int64_t last = length <= 0 ? -1 : length - size.queries + i;
      for (std::int64_t h = 0; h < size.heads; ++h) {
        const std::int64_t column = h * size.head_dim;
        const T* const q = operand<const T>(call, 0) + row * size.width + column;
        double largest = -HUGE_VAL, total = 0;
        for (std::int64_t p = 0; p <= last; ++p) {
          const T* const key = operand<const T>(call, 1) + (s * size.positions + p) * size.width + column;
          double score = 0;
          for (std::int64_t d = 0; d < size.head_dim; ++d)
            score += static_cast<double>(to_float(q[d])) * to_float(key[d]);
          weights[static_cast<std::size_t>(p)] = score / root;
          largest = std::max(largest, score / root);
        }
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::int64_t p = 0; p <= last; ++p) {
          const double weight = std::exp(weights[static_cast<std::size_t>(p)] - largest);
          const T* const value = operand<const T>(call, 2) + (s * size.positions + p) * size.width + column;
          total += weight;
          for (std::int64_t d = 0; d < size.head_dim; ++d)
            sums[static_cast<std::size_t>(d)] += weight * to_float(value[d]);
        }
        for (std::int64_t d = 0; d < size.head_dim; ++d)
          operand<T>(call, 4)[row * size.width + column + d] =
              from_double<T>(last < 0 ? 0.0 : sums[static_cast<std::size_t>(d)] / total);
      }
    }
  });
}

Extents extents(const KernelShape& shape) {
  const Heads size(shape);
  if (size.head_dim < 1 || size.head_dim > kMaxHeadDim)
    reject(fmt::format("attention with heads of {} elements", size.head_dim),
           fmt::format("Heads may have 1 to {}.", kMaxHeadDim));
  const std::int64_t fresh = size.sequences * size.queries * size.width;
  const std::int64_t cached = size.sequences * size.positions * size.width;
  return {fresh, cached, cached, size.sequences, fresh};
}

// As if every sequence were full, because lengths are data. One multiplication and one addition per element and visible
// position for the scores, and the same for the weighted sum.
Cost cost(const KernelShape& shape) {
  const Heads size(shape);
  const auto queries = static_cast<double>(size.queries), positions = static_cast<double>(size.positions);
  const double rows = static_cast<double>(size.sequences) * static_cast<double>(size.width);
  const double seen = queries * (positions - queries) + queries * (queries + 1) / 2;
  return {4 * rows * std::max(0.0, seen),
          2 * rows * (queries + positions) * element_bytes(shape) + 4 * static_cast<double>(size.sequences)};
}

// - A score is a float sum of head_dim products, whose errors are random: 2 sqrt(head_dim) roundings of a score of
//   about 1. An error of a score is a relative error of its weight.
// - exp is good to 2 units in the last place (4 roundings); the score's distance from the largest is rounded twice per
//   unit (once more on devices that use powers of 2), for distances up to 8, beyond which weights vanish.
// - The weighted sum and the sum of weights add up to `positions` terms: 2 sqrt(positions).
double tolerance(const KernelShape& shape) {
  const Heads size(shape);
  const double sums = std::sqrt(static_cast<double>(size.head_dim)) + std::sqrt(static_cast<double>(size.positions));
  return storage_tolerance(shape.type, 4 + 2 * 8 + 2 * sums);
}

Geometry geometry(const KernelShape& shape) {
  const Heads size(shape);
  const int lanes = attention_lanes(size.head_dim, static_cast<int>(size_of(shape.type)));
  const std::int64_t chunks = divide_up(size.queries, queries_per_block(size.queries, lanes));
  return {grid_of(size.sequences * size.heads * chunks),
          static_cast<unsigned>(size.queries <= kFewQueries ? kFewThreads : kManyThreads)};
}

}  // namespace

Kernel attention() {
  return {.name = "attention",
          .summary = "causal attention over cached keys and values",
          .operands = [](const KernelShape&) -> std::string_view { return "rrrrw"; },
          .extents = extents,
          .cost = cost,
          .blocks = blocks,
          .run_block = run_block,
          .reference = reference,
          .tolerance = tolerance,
          .geometry = geometry,
          .types = "tttit"};
}

}  // namespace weir::catalogue
