// Everything in device code that differs between CUDA and HIP (storage types, conversions, shuffles, the clock), and
// how a body gets its entry points. Kernel bodies include this and name no vendor.
#pragma once

#include "kernel/arguments.h"

#if defined(__HIPCC_RTC__)  // hipRTC brings them itself
#elif defined(__HIPCC__)
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#if !defined(INFINITY)  // compilers at run time have no <cmath>
#define INFINITY __int_as_float(0x7f800000)
#endif

namespace weir::device {

using Half = __half;

__device__ inline float load(const float* from) { return *from; }
__device__ inline float load(const Half* from) { return __half2float(*from); }
__device__ inline void store(float* to, float value) { *to = value; }
__device__ inline void store(Half* to, float value) { *to = __float2half_rn(value); }
// Integers are rounded towards zero.
__device__ inline void store(int* to, float value) { *to = static_cast<int>(value); }

#if defined(__HIPCC__)

// ROCm 5 has no bfloat16 header that device code for ROCm 6 also accepts; remove when 5 is no longer built.
struct Bfloat16 {
  unsigned short bits;
};
__device__ inline float load(const Bfloat16* from) { return __uint_as_float(static_cast<unsigned>(from->bits) << 16); }
__device__ inline void store(Bfloat16* to, float value) {
  const unsigned bits = __float_as_uint(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  to->bits = static_cast<unsigned short>(is_nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
__device__ inline float shuffle_xor(float value, int mask) { return __shfl_xor(value, mask); }
__device__ inline unsigned long long shuffle_xor(unsigned long long value, int mask) { return __shfl_xor(value, mask); }
// The lanes of the warp whose `claim` is true, one bit each.
__device__ inline unsigned long long ballot(bool claim) { return __ballot(claim); }
// Makes shared memory that a lane wrote readable by the other lanes of the warp. Warps run in lockstep, but a wave
// barrier does not order memory: without the fences a compiler may move loads and stores across it.
__device__ inline void sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
// A counter of constant rate: 25 MHz on Vega, MI100 and MI200, 100 MHz since. Uses HIP's function, because gfx11 has
// another instruction for it.
__device__ inline unsigned long long time_ns() {
#if defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__)
  constexpr unsigned long long kTickNs = 40;
#else
  constexpr unsigned long long kTickNs = 10;
#endif
  return static_cast<unsigned long long>(wall_clock64()) * kTickNs;
}
// A product that is rounded and never fused. hipcc fuses across its own __fmul_rn.
__device__ inline float rounded_product(float a, float b) {
#pragma clang fp contract(off)
  return a * b;
}

#else

using Bfloat16 = __nv_bfloat16;
__device__ inline float load(const Bfloat16* from) { return __bfloat162float(*from); }
__device__ inline void store(Bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }
__device__ inline float shuffle_xor(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ inline unsigned long long shuffle_xor(unsigned long long value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
// The lanes of the warp whose `claim` is true, one bit each.
__device__ inline unsigned long long ballot(bool claim) { return __ballot_sync(0xffffffffu, claim); }
// Makes shared memory that a lane wrote readable by the other lanes of the warp.
__device__ inline void sync_warp() { __syncwarp(); }
// A product that is rounded and never fused.
__device__ inline float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline unsigned long long time_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

#endif

template <class T>
__device__ inline T* operand(const KernelArguments& arguments, int index) {
  return static_cast<T*>(arguments.operands[index]);
}
__device__ inline long long global_thread() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline long long global_threads() { return static_cast<long long>(gridDim.x) * blockDim.x; }

}  // namespace weir::device

// Entry points: the functions weir_<kernel>_<type>, which a driver finds by name. Each body's file ends with its own.
// The bound on threads matches body.h's geometries; a second one is how many blocks a multiprocessor must hold.
#define WEIR_KERNEL(kernel, name, type, ...)                                                                        \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__) weir_##kernel##_##name(const weir::KernelArguments a) { \
    weir::device::kernel<type>(a);                                                                                  \
  }
#define WEIR_FLOAT_KERNEL(kernel, ...)                      \
  WEIR_KERNEL(kernel, f32, float, __VA_ARGS__)              \
  WEIR_KERNEL(kernel, f16, weir::device::Half, __VA_ARGS__) \
  WEIR_KERNEL(kernel, bf16, weir::device::Bfloat16, __VA_ARGS__)
#define WEIR_ANY_KERNEL(kernel, threads) \
  WEIR_FLOAT_KERNEL(kernel, threads)     \
  WEIR_KERNEL(kernel, i32, int, threads)
