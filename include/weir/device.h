/* What device code of a kernel package needs to be one source for all precisions: the type that is stored, the type to
 * compute in, and loads and stores between them. CUDA, HIP and OpenCL C. No vendor's header is included, because a
 * machine that has a driver may have none.
 *
 * The harness compiles a source once per precision, with WEIR_PRECISION set to a bit as of weir/kernel.h. There:
 *   weir_real                      the precision that is measured, as stored: what WEIR_REAL buffers hold
 *   weir_acc                       double for fp64, else float
 *   weir_load(pointer, index)      an element as weir_acc
 *   weir_store(pointer, index, v)  rounds to nearest even; NaN stays NaN; fp8 stops at its largest number
 *   weir_widen(real), weir_narrow(acc)   the same for values
 * Built ahead (nvcc, hipcc) there is one library for all precisions and no WEIR_PRECISION: write templates over double,
 * float, weir_fp16, weir_bf16, weir_fp8_e4m3 and weir_fp8_e5m2, with weir_acc_of<T>::type. All functions are overloaded
 * for these.
 *
 * CUDA and HIP: functions that are launched by name are extern "C" __global__. OpenCL: both headers are put before the
 * source, and an #include of one is left out; pointers are __global. */
#ifndef WEIR_DEVICE_H
#define WEIR_DEVICE_H

#include "weir/kernel.h"

#if WEIR_DEVICE_CODE
#if defined(__OPENCL_C_VERSION__)
#define WEIR_INLINE static inline __attribute__((always_inline))
#define WEIR_BITS_OF(value) as_uint(value)
#define WEIR_FLOAT_OF(bits) as_float(bits)
#else
#if defined(__HIPCC__) && !defined(__HIPCC_RTC__)
#include <hip/hip_runtime.h> /* hipcc, unlike the others, does not know __global__ by itself */
#endif
#define WEIR_INLINE __device__ __forceinline__
#define WEIR_BITS_OF(value) __float_as_uint(value)
#define WEIR_FLOAT_OF(bits) __uint_as_float(bits)
#endif

/* fp8 on devices without instructions for it, bit by bit as these have it and as weir/host.h does: to nearest even, and
 * to `largest` where that is exceeded. 3 and 4 bits of mantissa and exponent up to 0x7e, or 2 and 5 up to 0x7b. */
WEIR_INLINE unsigned char weir_narrow_to_byte(float value, int mantissa, int exponent, unsigned largest) {
  const unsigned bits = WEIR_BITS_OF(value), sign = bits >> 24 & 0x80u, size = bits & 0x7fffffffu;
  const int power = (int)(size >> 23) - 127, least = 2 - (1 << (exponent - 1));
  const int shift = 23 - mantissa + (power < least ? least - power : 0);
  if (size > 0x7f800000u) return (unsigned char)(sign | 0x7fu);
  if (shift > 24) return (unsigned char)sign;
  const unsigned digits = (size & 0x7fffffu) | 0x800000u, rest = digits & ((1u << shift) - 1u),
                 half_way = 1u << (shift - 1);
  unsigned result = digits >> shift;
  if (rest > half_way || (rest == half_way && (result & 1u) != 0)) ++result;
  if (power > least) result += (unsigned)(power - least) << mantissa;
  return (unsigned char)(sign | (result < largest ? result : largest));
}
WEIR_INLINE float weir_widen_byte(unsigned char byte, int mantissa, int exponent) {
  const unsigned sign = (byte & 0x80u) << 24, size = byte & 0x7fu, top = (1u << exponent) - 1u;
  const int least = 2 - (1 << (exponent - 1));
  const unsigned power = size >> mantissa, digits = size & ((1u << mantissa) - 1u);
  /* E4M3 uses its largest exponent for numbers, all but the last. */
  if (mantissa == 3 ? size == 0x7fu : power == top && digits != 0) return WEIR_FLOAT_OF(sign | 0x7fc00000u);
  if (mantissa != 3 && power == top) return WEIR_FLOAT_OF(sign | 0x7f800000u);
  if (power == 0) { /* digits * 2^(least - mantissa), exactly */
    const float value = (float)digits * WEIR_FLOAT_OF((unsigned)(least - mantissa + 127) << 23);
    return sign != 0 ? -value : value;
  }
  return WEIR_FLOAT_OF(sign | (power + (unsigned)(least - 1 + 127)) << 23 | digits << (23 - mantissa));
}

#if defined(__OPENCL_C_VERSION__)

#ifndef WEIR_PRECISION
#error "WEIR_PRECISION is not set: 1 fp64, 2 fp32, 4 fp16, 8 bf16, 32 fp8_e4m3, 64 fp8_e5m2"
#endif

#if WEIR_PRECISION == 1
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double weir_real;
typedef double weir_acc;
#elif WEIR_PRECISION == 2
typedef float weir_real;
typedef float weir_acc;
#elif WEIR_PRECISION == 32 || WEIR_PRECISION == 64
typedef uchar weir_real;
typedef float weir_acc;
#else
typedef ushort weir_real; /* bits: `half` as a type of values needs cl_khr_fp16 */
typedef float weir_acc;
#endif

#if WEIR_PRECISION == 4
WEIR_INLINE weir_acc weir_widen(weir_real value) { return vload_half(0, (const __private half*)&value); }
WEIR_INLINE weir_real weir_narrow(weir_acc value) {
  weir_real bits;
  vstore_half_rte(value, 0, (__private half*)&bits);
  return bits;
}
WEIR_INLINE weir_acc weir_load(__global const weir_real* from, long index) {
  return vload_half((size_t)index, (__global const half*)from);
}
WEIR_INLINE void weir_store(__global weir_real* to, long index, weir_acc value) {
  vstore_half_rte(value, (size_t)index, (__global half*)to);
}
#else
#if WEIR_PRECISION == 8
WEIR_INLINE weir_acc weir_widen(weir_real value) { return as_float((uint)value << 16); }
WEIR_INLINE weir_real weir_narrow(weir_acc value) {
  const uint bits = as_uint(value);
  return (bits & 0x7fffffffu) > 0x7f800000u ? (ushort)(bits >> 16 | 0x40u)
                                            : (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
#elif WEIR_PRECISION == 32
WEIR_INLINE weir_acc weir_widen(weir_real value) { return weir_widen_byte(value, 3, 4); }
WEIR_INLINE weir_real weir_narrow(weir_acc value) { return weir_narrow_to_byte(value, 3, 4, 0x7eu); }
#elif WEIR_PRECISION == 64
WEIR_INLINE weir_acc weir_widen(weir_real value) { return weir_widen_byte(value, 2, 5); }
WEIR_INLINE weir_real weir_narrow(weir_acc value) { return weir_narrow_to_byte(value, 2, 5, 0x7bu); }
#else
WEIR_INLINE weir_acc weir_widen(weir_real value) { return value; }
WEIR_INLINE weir_real weir_narrow(weir_acc value) { return value; }
#endif
WEIR_INLINE weir_acc weir_load(__global const weir_real* from, long index) { return weir_widen(from[index]); }
WEIR_INLINE void weir_store(__global weir_real* to, long index, weir_acc value) { to[index] = weir_narrow(value); }
#endif

#else /* CUDA and HIP */

struct weir_fp16 {
  unsigned short bits;
};
struct weir_bf16 {
  unsigned short bits;
};
struct weir_fp8_e4m3 {
  unsigned char bits;
};
struct weir_fp8_e5m2 {
  unsigned char bits;
};

template <class T>
struct weir_acc_of {
  typedef float type;
};
template <>
struct weir_acc_of<double> {
  typedef double type;
};

__device__ __forceinline__ double weir_widen(double value) { return value; }
__device__ __forceinline__ float weir_widen(float value) { return value; }
__device__ __forceinline__ float weir_widen(weir_bf16 value) { return __uint_as_float((unsigned)value.bits << 16); }

/* Compilers of the host see these bodies too, and do not know the device's types. */
__device__ __forceinline__ float weir_widen(weir_fp16 value) {
#if defined(__HIP_DEVICE_COMPILE__) || defined(__HIPCC_RTC__)
  return (float)__builtin_bit_cast(_Float16, value.bits);
#elif defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#else
  return 0.0f * (float)value.bits;
#endif
}

/* Ada and later convert fp8 by themselves; pairs, of which one is used. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define WEIR_CONVERTS_FP8 1
#else
#define WEIR_CONVERTS_FP8 0
#endif
__device__ __forceinline__ float weir_widen(weir_fp8_e4m3 value) {
#if WEIR_CONVERTS_FP8
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)value.bits));
  weir_fp16 wide;
  wide.bits = (unsigned short)pair;
  return weir_widen(wide);
#else
  return weir_widen_byte(value.bits, 3, 4);
#endif
}
__device__ __forceinline__ float weir_widen(weir_fp8_e5m2 value) {
#if WEIR_CONVERTS_FP8
  unsigned pair;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)value.bits));
  weir_fp16 wide;
  wide.bits = (unsigned short)pair;
  return weir_widen(wide);
#else
  return weir_widen_byte(value.bits, 2, 5);
#endif
}

/* What a value is narrowed to cannot be seen from its arguments alone, so the type is named: weir_narrow_to<T>(v). */
template <class T>
__device__ __forceinline__ T weir_narrow_to(typename weir_acc_of<T>::type value) {
  return value;
}
template <>
__device__ __forceinline__ weir_fp16 weir_narrow_to<weir_fp16>(float value) {
  weir_fp16 narrow;
#if defined(__HIP_DEVICE_COMPILE__) || defined(__HIPCC_RTC__)
  narrow.bits = __builtin_bit_cast(unsigned short, (_Float16)value);
#elif defined(__CUDA_ARCH__)
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
#else
  narrow.bits = (unsigned short)value;
#endif
  return narrow;
}
template <>
__device__ __forceinline__ weir_bf16 weir_narrow_to<weir_bf16>(float value) {
  const unsigned bits = __float_as_uint(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  weir_bf16 narrow;
  narrow.bits = (unsigned short)(is_nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  return narrow;
}

template <>
__device__ __forceinline__ weir_fp8_e4m3 weir_narrow_to<weir_fp8_e4m3>(float value) {
  weir_fp8_e4m3 narrow;
#if WEIR_CONVERTS_FP8
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  narrow.bits = (unsigned char)pair;
#else
  narrow.bits = weir_narrow_to_byte(value, 3, 4, 0x7eu);
#endif
  return narrow;
}
template <>
__device__ __forceinline__ weir_fp8_e5m2 weir_narrow_to<weir_fp8_e5m2>(float value) {
  weir_fp8_e5m2 narrow;
#if WEIR_CONVERTS_FP8
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  narrow.bits = (unsigned char)pair;
#else
  narrow.bits = weir_narrow_to_byte(value, 2, 5, 0x7bu);
#endif
  return narrow;
}

template <class T>
__device__ __forceinline__ typename weir_acc_of<T>::type weir_load(const T* from, long long index) {
  return weir_widen(from[index]);
}
template <class T>
__device__ __forceinline__ void weir_store(T* to, long long index, typename weir_acc_of<T>::type value) {
  to[index] = weir_narrow_to<T>(value);
}

#ifdef WEIR_PRECISION
#if WEIR_PRECISION == 1
typedef double weir_real;
#elif WEIR_PRECISION == 2
typedef float weir_real;
#elif WEIR_PRECISION == 4
typedef weir_fp16 weir_real;
#elif WEIR_PRECISION == 8
typedef weir_bf16 weir_real;
#elif WEIR_PRECISION == 32
typedef weir_fp8_e4m3 weir_real;
#elif WEIR_PRECISION == 64
typedef weir_fp8_e5m2 weir_real;
#else
#error "WEIR_PRECISION is none of 1 fp64, 2 fp32, 4 fp16, 8 bf16, 32 fp8_e4m3, 64 fp8_e5m2"
#endif
typedef weir_acc_of<weir_real>::type weir_acc;
__device__ __forceinline__ weir_real weir_narrow(weir_acc value) { return weir_narrow_to<weir_real>(value); }
#endif

#endif /* CUDA and HIP */
#undef WEIR_INLINE
#undef WEIR_BITS_OF
#undef WEIR_FLOAT_OF
#endif /* WEIR_DEVICE_CODE */
#endif
