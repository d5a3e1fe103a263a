// Softmax of rows on CUDA. One block has one row. kernel.cpp decides which of the two bodies a problem gets.
#include "weir/device.h"

namespace {

constexpr int kWidth = 16 / sizeof(weir_real);
constexpr int kHeldPacks = 4;  // as in kernel.cpp
constexpr unsigned kAll = 0xffffffffu;

struct alignas(16) Pack {
  weir_real values[kWidth];
};

__device__ weir_acc larger(weir_acc a, weir_acc b) { return a > b ? a : b; }
// Below all that a row may hold; no infinity, so that the difference of two is a number.
__device__ weir_acc lowest() { return sizeof(weir_acc) == 8 ? (weir_acc)-1.7e308 : (weir_acc)-3.4e38f; }

struct Largest {
  static __device__ weir_acc none() { return lowest(); }
  static __device__ weir_acc join(weir_acc a, weir_acc b) { return larger(a, b); }
};
struct Sum {
  static __device__ weir_acc none() { return 0; }
  static __device__ weir_acc join(weir_acc a, weir_acc b) { return a + b; }
};

// The same for all threads of the block. `shared` has 32 elements that nobody else uses: no thread waits at the end.
template <class Operation>
__device__ weir_acc over_block(weir_acc value, weir_acc* shared) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = Operation::join(value, __shfl_xor_sync(kAll, value, distance));
  const int warps = blockDim.x / 32;
  if (warps == 1) return value;
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  value = lane < warps ? shared[lane] : Operation::none();
  for (int distance = 16; distance > 0; distance /= 2)
    value = Operation::join(value, __shfl_xor_sync(kAll, value, distance));
  return value;
}

}  // namespace

// columns is a multiple of kWidth and at most blockDim.x * kHeldPacks * kWidth: the row stays in registers.
extern "C" __global__ void softmax_held(const weir_real* __restrict__ in, weir_real* __restrict__ out, int columns) {
  __shared__ weir_acc largest_shared[32];
  __shared__ weir_acc sum_shared[32];
  const long long start = (long long)blockIdx.x * columns;
  const Pack* from = reinterpret_cast<const Pack*>(in + start);
  Pack* to = reinterpret_cast<Pack*>(out + start);
  const int packs = columns / kWidth;

  Pack packed[kHeldPacks];
#pragma unroll
  for (int i = 0; i < kHeldPacks; ++i) {
    const int at = threadIdx.x + i * blockDim.x;
    if (at < packs) packed[i] = from[at];
  }
  weir_acc held[kHeldPacks][kWidth];
  weir_acc largest = lowest();
#pragma unroll
  for (int i = 0; i < kHeldPacks; ++i) {
    const bool is_in = threadIdx.x + i * blockDim.x < packs;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      held[i][j] = is_in ? weir_widen(packed[i].values[j]) : lowest();
      largest = larger(largest, held[i][j]);
    }
  }
  largest = over_block<Largest>(largest, largest_shared);

  weir_acc sum = 0;
#pragma unroll
  for (int i = 0; i < kHeldPacks; ++i) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      held[i][j] = exp(held[i][j] - largest);  // 0 for what is beyond the row
      sum += held[i][j];
    }
  }
  const weir_acc scale = 1 / over_block<Sum>(sum, sum_shared);

#pragma unroll
  for (int i = 0; i < kHeldPacks; ++i) {
    const int at = threadIdx.x + i * blockDim.x;
    if (at >= packs) continue;
    Pack result;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) result.values[j] = weir_narrow(held[i][j] * scale);
    to[at] = result;
  }
}

// Rows of any length: largest value and sum in one pass, the result in a second one.
extern "C" __global__ void softmax_long(const weir_real* __restrict__ in, weir_real* __restrict__ out, int columns) {
  __shared__ weir_acc largest_shared[32];
  __shared__ weir_acc sum_shared[32];
  const weir_real* from = in + (long long)blockIdx.x * columns;
  weir_real* to = out + (long long)blockIdx.x * columns;

  weir_acc mine = lowest(), sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const weir_acc value = weir_load(from, i);
    if (value > mine) {
      sum = sum * exp(mine - value) + 1;
      mine = value;
    } else {
      sum += exp(value - mine);
    }
  }
  const weir_acc largest = over_block<Largest>(mine, largest_shared);
  const weir_acc scale = 1 / over_block<Sum>(sum * exp(mine - largest), sum_shared);
  for (int i = threadIdx.x; i < columns; i += blockDim.x) weir_store(to, i, exp(weir_load(from, i) - largest) * scale);
}
