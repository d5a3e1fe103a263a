// How attention packs its heads into a dimension, and how its device body divides the work. Shared by workloads, the
// launch geometry and device code.
#pragma once


#include "kernel/random.h"

namespace weir {

// dims[3]: number of heads and width of each.
WEIR_HOST_DEVICE constexpr long long heads_of(long long heads, long long head_dim) {
  return heads << 32 | head_dim;
}
WEIR_HOST_DEVICE constexpr long long heads_in(long long packed) { return packed >> 32; }
WEIR_HOST_DEVICE constexpr long long head_dim_in(long long packed) { return packed & 0xffffffff; }

inline constexpr int kMaxHeadDim = 128;

// Up to this many queries (decoding), threads divide the positions; with more (prefill), they divide the queries.
inline constexpr int kFewQueries = 8;
inline constexpr int kFewThreads = 256;
inline constexpr int kManyThreads = 128;
inline constexpr int kQueriesPerGroup = 4;

// Lanes that share a position of a head, 16 bytes each.
WEIR_HOST_DEVICE constexpr int attention_lanes(long long head_dim, int element_bytes) {
  int lanes = 1;
  while (lanes * 16 < head_dim * element_bytes) lanes *= 2;
  return lanes;
}
WEIR_HOST_DEVICE constexpr int queries_per_block(long long queries, int lanes) {
  if (queries <= kFewQueries) return queries == 1 ? 1 : kQueriesPerGroup;
  return kManyThreads / lanes * kQueriesPerGroup;
}

}  // namespace weir
