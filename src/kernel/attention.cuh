// Device body of attention: softmax and weighted sum in one pass over the positions, with a running maximum. Few
// queries (decoding) are limited by reading keys and values, so warps divide the positions and merge at the end; many
// (prefill) are limited by arithmetic, so they share tiles of keys and values in shared memory.
#pragma once

#include "kernel/attention.h"
#include "kernel/device_loops.cuh"

namespace weir::device {

// State of a group of lanes for kQueries queries: each lane has kWidth elements of the head.
template <int kQueries, int kWidth>
struct Attended {
  float query[kQueries][kWidth];  // scaled so that 2^score is the weight
  float sum[kQueries][kWidth];
  float largest[kQueries];
  float total[kQueries];
  int seen[kQueries];  // positions from here on are hidden
};

// The factor that rescales a sum from one maximum to a larger one. Both are -inf if no position was seen yet.
__device__ inline float rescaled(float from, float to) { return exp2f(from - (to > -INFINITY ? to : 0.0f)); }

// Processes kPositions more positions: key(p, values) and value(p, values) load them, position(p) returns their
// numbers. Every lane of a warp must call this.
template <int kPositions, int kQueries, int kWidth, class Key, class Value, class Position>
__device__ inline void attend(Attended<kQueries, kWidth>& state, int lanes, Key key, Value value, Position position) {
  float scores[kQueries][kPositions];
#pragma unroll
  for (int p = 0; p < kPositions; ++p) {
    float loaded[kWidth];
    key(p, loaded);
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      scores[q][p] = 0;
#pragma unroll
      for (int e = 0; e < kWidth; ++e) scores[q][p] += state.query[q][e] * loaded[e];
    }
  }
  for (int mask = lanes / 2; mask > 0; mask /= 2) {
#pragma unroll
    for (int q = 0; q < kQueries; ++q)
#pragma unroll
      for (int p = 0; p < kPositions; ++p) scores[q][p] += shuffle_xor(scores[q][p], mask);
  }
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
    float largest = state.largest[q];
#pragma unroll
    for (int p = 0; p < kPositions; ++p) {
      if (position(p) >= state.seen[q]) scores[q][p] = -INFINITY;
      largest = fmaxf(largest, scores[q][p]);
    }
    const float factor = rescaled(state.largest[q], largest);
    state.largest[q] = largest;
    state.total[q] *= factor;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) state.sum[q][e] *= factor;
#pragma unroll
    for (int p = 0; p < kPositions; ++p) {
      scores[q][p] = rescaled(scores[q][p], largest);  // now a weight
      state.total[q] += scores[q][p];
    }
  }
#pragma unroll
  for (int p = 0; p < kPositions; ++p) {
    float loaded[kWidth];
    value(p, loaded);
#pragma unroll
    for (int q = 0; q < kQueries; ++q)
#pragma unroll
      for (int e = 0; e < kWidth; ++e) state.sum[q][e] += scores[q][p] * loaded[e];
  }
}

// One launch as seen by a block: its sequence, its head, and the first of its queries.
template <class T>
struct AttentionBlock {
  __device__ explicit AttentionBlock(const KernelArguments& a)
      : queries(static_cast<int>(a.dims[1])),
        positions(static_cast<int>(a.dims[2])),
        head_dim(static_cast<int>(head_dim_in(a.dims[3]))),
        lanes(attention_lanes(head_dim, sizeof(T))) {
    const long long heads = heads_in(a.dims[3]);
    const int per_block = queries_per_block(queries, lanes);
    const int chunks = (queries + per_block - 1) / per_block;
    const long long head = blockIdx.x % heads, rest = blockIdx.x / heads, sequence = rest / chunks;
    // The last queries see most positions: they go first, so that a launch does not end with its longest blocks.
    first = (chunks - 1 - static_cast<int>(rest % chunks)) * per_block;
    width = heads * head_dim;
    length = min(operand<const int>(a, 3)[sequence], positions);
    q = operand<const T>(a, 0) + (sequence * queries) * width + head * head_dim;
    keys = operand<const T>(a, 1) + (sequence * positions) * width + head * head_dim;
    values = operand<const T>(a, 2) + (sequence * positions) * width + head * head_dim;
    out = operand<T>(a, 4) + (sequence * queries) * width + head * head_dim;
    constexpr int kWidth = 16 / sizeof(T);
    is_wide = head_dim % kWidth == 0 && is_aligned<kWidth>(keys) && is_aligned<kWidth>(values);
  }
  __device__ int seen(int query) const {
    return length <= 0 || query >= queries ? 0 : max(0, length - queries + query + 1);
  }
  // The factor on each score, so that 2^score is the weight.
  __device__ float scale() const { return 1.44269504f / sqrtf(static_cast<float>(head_dim)); }
  // Element e of a row as a float; 0 beyond the head.
  __device__ float element(const T* row, int e) const { return e < head_dim ? load(row + e) : 0.0f; }

  int queries, positions, head_dim, lanes, length, first;
  long long width;
  const T* q;
  const T* keys;
  const T* values;
  T* out;
  bool is_wide;
};

// 16 bytes of a row from element `begin`. Rows from `most` on and elements beyond the head may be any finite value:
// their weight is 0 or they are not stored. So the wide version loads without branches, back to back.
template <bool kIsWide, class T>
__device__ inline Run<T, 16 / sizeof(T)> slice_of(const AttentionBlock<T>& block, const T* rows, int row, int begin,
                                                  int most) {
  constexpr int kWidth = 16 / sizeof(T);
  const T* const from = rows + min(row, most - 1) * block.width;
  if constexpr (kIsWide) {
    return run_at<kWidth>(from + (begin < block.head_dim ? begin : 0), 0);
  } else {
    Run<T, kWidth> run;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      if (begin + e < block.head_dim) {
        run.elements[e] = from[begin + e];
      } else {
        store(run.elements + e, 0.0f);
      }
    }
    return run;
  }
}

// Merges the results of a warp's groups, which have different positions.
template <int kQueries, int kWidth>
__device__ inline void merge_warp(Attended<kQueries, kWidth>& state, int lanes) {
  for (int mask = lanes; mask < warpSize; mask *= 2) {
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      const float other = shuffle_xor(state.largest[q], mask);
      const float largest = fmaxf(state.largest[q], other);
      const float mine = rescaled(state.largest[q], largest), theirs = rescaled(other, largest);
      state.largest[q] = largest;
      state.total[q] = state.total[q] * mine + shuffle_xor(state.total[q], mask) * theirs;
#pragma unroll
      for (int e = 0; e < kWidth; ++e)
        state.sum[q][e] = state.sum[q][e] * mine + shuffle_xor(state.sum[q][e], mask) * theirs;
    }
  }
}

// Decoding: groups of lanes take positions in turn, kPositions at a time to keep enough loads in flight.
template <bool kIsWide, int kQueries, int kPositions, class T>
__device__ inline void attend_few(const AttentionBlock<T>& block, float* room) {
  constexpr int kWidth = 16 / sizeof(T);
  constexpr int kPart = kMaxHeadDim + 2;  // a warp's sum, total and maximum for one query
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize, warps = blockDim.x / warpSize;
  const int begin = lane % block.lanes * kWidth, group = lane / block.lanes, groups = warpSize / block.lanes;
  Attended<kQueries, kWidth> state;
  int most = 0;
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
    state.seen[q] = block.seen(block.first + q);
    most = max(most, state.seen[q]);
    state.largest[q] = -INFINITY;
    state.total[q] = 0;
    const T* const row = block.q + (block.first + q) * block.width;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      state.query[q][e] = block.first + q < block.queries ? block.element(row, begin + e) * block.scale() : 0.0f;
      state.sum[q][e] = 0;
    }
  }
  for (int base = warp * groups * kPositions; base < most; base += warps * groups * kPositions) {
    const auto position = [=](int p) { return base + p * groups + group; };
    Run<T, kWidth> keys[kPositions], values[kPositions];
#pragma unroll
    for (int p = 0; p < kPositions; ++p) keys[p] = slice_of<kIsWide>(block, block.keys, position(p), begin, most);
#pragma unroll
    for (int p = 0; p < kPositions; ++p) values[p] = slice_of<kIsWide>(block, block.values, position(p), begin, most);
    const auto load_from = [](const Run<T, kWidth>& run, float(&to)[kWidth]) {
#pragma unroll
      for (int e = 0; e < kWidth; ++e) to[e] = load(run.elements + e);
    };
    attend<kPositions>(
        state, block.lanes, [&](int p, float(&to)[kWidth]) { load_from(keys[p], to); },
        [&](int p, float(&to)[kWidth]) { load_from(values[p], to); }, position);
  }
  merge_warp(state, block.lanes);
  if (group == 0) {
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      float* const part = room + (warp * kQueries + q) * kPart;
#pragma unroll
      for (int e = 0; e < kWidth; ++e)
        if (begin + e < block.head_dim) part[begin + e] = state.sum[q][e];
      part[kMaxHeadDim] = state.total[q];
      part[kMaxHeadDim + 1] = state.largest[q];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kQueries * block.head_dim; i += blockDim.x) {
    const int q = i / block.head_dim, e = i % block.head_dim;
    if (block.first + q >= block.queries) continue;
    float largest = -INFINITY, total = 0, sum = 0;
    for (int w = 0; w < warps; ++w) largest = fmaxf(largest, room[(w * kQueries + q) * kPart + kMaxHeadDim + 1]);
    for (int w = 0; w < warps; ++w) {
      const float* const part = room + (w * kQueries + q) * kPart;
      const float factor = rescaled(part[kMaxHeadDim + 1], largest);
      total += part[kMaxHeadDim] * factor;
      sum += part[e] * factor;
    }
    store(block.out + (block.first + q) * block.width + e, block.seen(block.first + q) > 0 ? sum / total : 0.0f);
  }
}

template <class T, int kWidth>
__device__ inline void store_floats(const Run<T, kWidth>& run, float* to) {
#pragma unroll
  for (int e = 0; e < kWidth; e += 4) {
    Run<float, 4> floats;
#pragma unroll
    for (int i = 0; i < 4; ++i) floats.elements[i] = load(run.elements + e + i);
    run_at<4>(to + e, 0) = floats;
  }
}

constexpr int kTileFloats = 4096;  // of keys, and as many of values: 32 positions of the widest head

// Prefill: each group of lanes has its own queries and sees every position of a tile. A lane's elements are in runs of
// 4 that alternate between lanes, so that a group reads shared memory without bank conflicts.
template <int kQueries, int kPositions, class T>
__device__ inline void attend_many(const AttentionBlock<T>& block, float* room) {
  constexpr int kWidth = 16 / sizeof(T);
  const int lane = threadIdx.x % block.lanes, group = threadIdx.x / block.lanes, groups = blockDim.x / block.lanes;
  const int stride = block.lanes * kWidth, per_tile = kTileFloats / stride;
  const auto element = [=](int e) { return e / 4 * block.lanes * 4 + lane * 4 + e % 4; };
  const int first = block.first + group * kQueries;
  Attended<kQueries, kWidth> state;
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
    state.seen[q] = block.seen(first + q);
    state.largest[q] = -INFINITY;
    state.total[q] = 0;
    const T* const row = block.q + (first + q) * block.width;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      state.query[q][e] = first + q < block.queries ? block.element(row, element(e)) * block.scale() : 0.0f;
      state.sum[q][e] = 0;
    }
  }
  // Later queries see more positions: the block's last query limits the tiles, a warp's last one its share of them.
  const int most = block.seen(min(block.queries, block.first + groups * kQueries) - 1);
  const int warp_groups = warpSize / block.lanes,
            next = block.first + (group / warp_groups + 1) * warp_groups * kQueries;
  const int warp_most = next - block.queries >= warp_groups * kQueries ? 0 : block.seen(min(block.queries, next) - 1);
  float* const keys = room;
  float* const values = room + kTileFloats;
  for (int base = 0; base < most; base += per_tile) {
    __syncthreads();  // after the last tile was read
    for (int i = threadIdx.x; i < kTileFloats / kWidth; i += blockDim.x) {
      const int row = base + i / block.lanes, begin = i % block.lanes * kWidth;
      const auto key = block.is_wide ? slice_of<true>(block, block.keys, row, begin, most)
                                     : slice_of<false>(block, block.keys, row, begin, most);
      const auto value = block.is_wide ? slice_of<true>(block, block.values, row, begin, most)
                                       : slice_of<false>(block, block.values, row, begin, most);
      store_floats(key, keys + i * kWidth);
      store_floats(value, values + i * kWidth);
    }
    __syncthreads();
    const auto load_from = [=](const float* row, float(&to)[kWidth]) {
#pragma unroll
      for (int e = 0; e < kWidth; e += 4) {
        const Run<float, 4> run = run_at<4>(row + element(e), 0);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[e + i] = run.elements[i];
      }
    };
    for (int p0 = 0; p0 < min(per_tile, warp_most - base); p0 += kPositions)
      attend<kPositions>(
          state, block.lanes, [&](int p, float(&to)[kWidth]) { load_from(keys + (p0 + p) * stride, to); },
          [&](int p, float(&to)[kWidth]) { load_from(values + (p0 + p) * stride, to); },
          [=](int p) { return base + p0 + p; });
  }
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
    if (first + q >= block.queries) continue;
#pragma unroll
    for (int e = 0; e < kWidth; ++e)
      if (element(e) < block.head_dim)
        store(block.out + (first + q) * block.width + element(e),
              state.seen[q] > 0 ? state.sum[q][e] / state.total[q] : 0.0f);
  }
}

template <class T>
__device__ inline void attention(const KernelArguments& a) {
  alignas(16) __shared__ float room[2 * kTileFloats];
  const AttentionBlock<T> block(a);
  if (block.queries > kFewQueries) return attend_many<kQueriesPerGroup, 4>(block, room);
  if (!block.is_wide) {
    block.queries == 1 ? attend_few<false, 1, 1>(block, room) : attend_few<false, kQueriesPerGroup, 1>(block, room);
  } else if (block.queries == 1) {
    attend_few<true, 1, 4>(block, room);
  } else {
    attend_few<true, kQueriesPerGroup, 2>(block, room);
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(attention, 256, 2)
