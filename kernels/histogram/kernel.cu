// A histogram on CUDA: counted in shared memory, in a table per warp where there is room, then added to the result.
#include "weir/device.h"

namespace {

constexpr int kWidth = 16 / sizeof(weir_real);
constexpr int kAtOnce = 4;  // loads under way in each thread

struct alignas(16) Pack {
  weir_real values[kWidth];
};

// bins is a power of two: the product is exact.
__device__ void count_value(weir_acc value, unsigned* table, weir_acc bins, int last) {
  const int bin = (int)(value * bins);
  atomicAdd(&table[min(max(bin, 0), last)], 1u);
}

__device__ void count_pack(const Pack& pack, unsigned* table, weir_acc bins, int last) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) count_value(weir_widen(pack.values[i]), table, bins, last);
}

}  // namespace

extern "C" __global__ void clear(unsigned* counts, int bins) {
  const int bin = blockIdx.x * blockDim.x + threadIdx.x;
  if (bin < bins) counts[bin] = 0;
}

extern "C" __global__ void count_values(const weir_real* __restrict__ in, unsigned* __restrict__ counts,
                                        long long count, int bins, int copies) {
  extern __shared__ unsigned tables[];
  for (int i = threadIdx.x; i < copies * bins; i += blockDim.x) tables[i] = 0;
  __syncthreads();

  unsigned* mine = tables + (threadIdx.x / 32 % copies) * bins;
  const weir_acc scale = (weir_acc)bins;
  const int last = bins - 1;
  const Pack* packs = reinterpret_cast<const Pack*>(in);
  const long long pack_count = count / kWidth;
  const long long step = (long long)gridDim.x * blockDim.x;
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; at + (kAtOnce - 1) * step < pack_count; at += kAtOnce * step) {
    Pack loaded[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) loaded[i] = packs[at + i * step];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) count_pack(loaded[i], mine, scale, last);
  }
  for (; at < pack_count; at += step) count_pack(packs[at], mine, scale, last);
  // What does not fill a pack is less than a warp.
  const long long rest = pack_count * kWidth + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) count_value(weir_load(in, rest), mine, scale, last);
  __syncthreads();

  for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) {
    unsigned sum = 0;
    for (int copy = 0; copy < copies; ++copy) sum += tables[copy * bins + bin];
    if (sum != 0) atomicAdd(&counts[bin], sum);
  }
}
