// Device body of the element-wise chain.
#pragma once

#include "kernel/chain.h"
#include "kernel/device_loops.cuh"

namespace weir::device {

template <int N, class Function>
__device__ inline void each(float (&values)[N], Function function) {
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = function(values[i]);
}

// Comparisons preserve NaN, as in the CPU body.
template <int N>
__device__ inline void apply(ChainOp op, float (&values)[N], float first, float second) {
  switch (op) {
    case ChainOp::mul:
      return each(values, [=](float x) { return x * first; });
    case ChainOp::add:
      return each(values, [=](float x) { return x + first; });
    case ChainOp::abs:
      return each(values, [](float x) { return fabsf(x); });
    case ChainOp::clamp:
      return each(values, [=](float x) { return x < first ? first : x > second ? second : x; });
    case ChainOp::relu:
      return each(values, [](float x) { return x < 0 ? 0 : x; });
    case ChainOp::square:
      return each(values, [](float x) { return x * x; });
    case ChainOp::none:
      return;
  }
}

template <class T>
__device__ inline void chain(const KernelArguments& a) {
  const auto ops = static_cast<unsigned>(a.dims[1]);
  map_floats(operand<const T>(a, 0), operand<T>(a, 1), a.dims[0], [&](auto& values) {
    // Scalars are shifted through registers: indexing the parameters at run time would copy them all to local memory.
    float s0 = a.scalars[0], s1 = a.scalars[1], s2 = a.scalars[2], s3 = a.scalars[3];
    // Every thread takes the same branches; short chains end early.
    for (unsigned rest = ops; rest != 0; rest >>= 8) {
      const auto op = static_cast<ChainOp>(rest & 0xff);
      apply(op, values, s0, s1);
      if (op == ChainOp::mul || op == ChainOp::add) {
        s0 = s1, s1 = s2, s2 = s3;
      } else if (op == ChainOp::clamp) {
        s0 = s2, s1 = s3;
      }
    }
  });
}

// One operation, one element per thread.
template <ChainOp op, class T>
__device__ inline void chain_single(const ElementArguments& a) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= a.count) return;
  float value[] = {load(static_cast<const T*>(a.operands[0]) + i)};
  apply(op, value, a.scalars[0], a.scalars[1]);
  store(static_cast<T*>(a.operands[1]) + i, value[0]);
}

}  // namespace weir::device

#define WEIR_CHAIN_KERNEL(op, name, type)                                                                      \
  extern "C" __global__ void __launch_bounds__(256) weir_chain_##op##_##name(const weir::ElementArguments a) { \
    weir::device::chain_single<weir::ChainOp::op, type>(a);                                                    \
  }
#define WEIR_LEAN_CHAIN(op)                      \
  WEIR_CHAIN_KERNEL(op, f32, float)              \
  WEIR_CHAIN_KERNEL(op, f16, weir::device::Half) \
  WEIR_CHAIN_KERNEL(op, bf16, weir::device::Bfloat16)

WEIR_FLOAT_KERNEL(chain, 256)
WEIR_LEAN_CHAIN(mul)
WEIR_LEAN_CHAIN(add)
WEIR_LEAN_CHAIN(abs)
WEIR_LEAN_CHAIN(clamp)
