// Counter-based data: element i of a buffer depends only on (seed, i), bit for bit the same on host and device.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define WEIR_HOST_DEVICE __host__ __device__
#else
#define WEIR_HOST_DEVICE
#endif

namespace weir {

// Mixes seed and index into 32 well-distributed bits (the finaliser of murmur3, twice).
WEIR_HOST_DEVICE inline unsigned random_bits(unsigned long long seed, unsigned long long index) {
  unsigned long long z = seed * 0x9E3779B97F4A7C15ull + index;
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdull;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53ull;
  z ^= z >> 33;
  return static_cast<unsigned>(z >> 16);
}

// Uniform in [-1, 1). Every operation here is exact in float, so no compiler can round it differently.
WEIR_HOST_DEVICE inline float random_unit(unsigned long long seed, unsigned long long index) {
  return static_cast<float>(random_bits(seed, index) >> 8) * (1.0f / 8388608.0f) - 1.0f;
}

// offset + scale * random_unit. Device code must not fuse the two: CUDA has intrinsics for that; HIP's are plain
// operators and need a pragma.
WEIR_HOST_DEVICE inline float random_uniform(unsigned long long seed, unsigned long long index, float scale,
                                             float offset) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(__fmul_rn(scale, random_unit(seed, index)), offset);
#else
#if defined(__HIPCC__)
#pragma clang fp contract(off)
#endif
  return scale * random_unit(seed, index) + offset;
#endif
}

}  // namespace weir
