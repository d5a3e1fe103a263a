// The sum of an array on CUDA, without atomics: each block writes its sum, one block adds them up. The order depends on
// the grid alone, and that on the size.
#include "weir/device.h"

namespace {

constexpr int kWidth = 16 / sizeof(weir_real);
constexpr int kAtOnce = 8;  // loads under way in each thread: latency is hidden by these, not by more blocks
constexpr unsigned kAll = 0xffffffffu;

struct alignas(16) Pack {
  weir_real values[kWidth];
};

__device__ weir_acc sum_of(const Pack& pack) {
  weir_acc sums[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[i] = weir_widen(pack.values[i]);
#pragma unroll
  for (int width = kWidth / 2; width > 0; width /= 2) {
#pragma unroll
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

// In thread 0 of a block of whole warps.
__device__ weir_acc over_block(weir_acc sum) {
  __shared__ weir_acc shared[32];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(kAll, sum, distance);
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return 0;
  sum = lane < warps ? shared[lane] : 0;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(kAll, sum, distance);
  return sum;
}

}  // namespace

extern "C" __global__ void sum_blocks(const weir_real* __restrict__ in, weir_acc* __restrict__ block_sums,
                                      long long count) {
  const Pack* packs = reinterpret_cast<const Pack*>(in);
  const long long pack_count = count / kWidth;
  const long long step = (long long)gridDim.x * blockDim.x;
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;

  weir_acc sums[kAtOnce] = {};
  for (; at + (kAtOnce - 1) * step < pack_count; at += kAtOnce * step) {
    Pack loaded[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) loaded[i] = packs[at + i * step];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sums[i] += sum_of(loaded[i]);
  }
  for (; at < pack_count; at += step) sums[0] += sum_of(packs[at]);
#pragma unroll
  for (int width = kAtOnce / 2; width > 0; width /= 2) {
#pragma unroll
    for (int i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  // What does not fill a pack is less than a warp.
  const long long rest = pack_count * kWidth + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) sums[0] += weir_load(in, rest);

  const weir_acc sum = over_block(sums[0]);
  if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
}

extern "C" __global__ void sum_of_blocks(const weir_acc* __restrict__ block_sums, weir_acc* __restrict__ out,
                                         int blocks) {
  weir_acc sum = 0;
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) sum += block_sums[i];
  sum = over_block(sum);
  if (threadIdx.x == 0) *out = sum;
}
