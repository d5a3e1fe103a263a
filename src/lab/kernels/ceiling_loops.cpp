#include "lab/kernels/ceiling_loops.h"

// The rest of the program keeps products and sums apart, so that results are the same everywhere. Here they must be
// fused into one instruction. With GCC this applies to the whole file, which therefore contains nothing else.
#if defined(__clang__)
#pragma STDC FP_CONTRACT ON
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC optimize("O3", "fp-contract=fast")
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace weir::bench {
namespace {

template <class Scalar, int kBytes>
struct VectorOf {
  typedef Scalar type __attribute__((vector_size(kBytes)));
};

// Volatile, so that the compiler cannot compute anything in advance. Small enough that values stay finite.
volatile double g_start = 1, g_factor = 1e-8;

// Independent chains hide each other's latency: four or five cycles, times two to four units.
template <class Scalar, int kBytes, int kChains>
[[gnu::always_inline]] inline double chains(std::uint64_t rounds) {
  using Vector = typename VectorOf<Scalar, kBytes>::type;
  // By reference: compilers warn about returned vectors if wide registers are not enabled.
  const auto fill = [](Vector& vector, double value) {
    for (unsigned lane = 0; lane < kBytes / sizeof(Scalar); ++lane) vector[lane] = static_cast<Scalar>(value);
  };
  Vector factor, values[kChains];
  fill(factor, g_factor);
  for (Vector& value : values) fill(value, g_start);  // read again for each: equal chains could be merged
  // A value is added to itself: on ARM the addend is overwritten, and a third register would need a move.
  for (std::uint64_t i = 0; i < rounds; ++i)
    for (int c = 0; c < kChains; ++c) values[c] += values[c] * factor;
  Vector sum = values[0];
  for (int c = 1; c < kChains; ++c) sum += values[c];
  double result = 0;
  for (unsigned lane = 0; lane < kBytes / sizeof(Scalar); ++lane) result += static_cast<double>(sum[lane]);
  return result;
}

template <class Scalar, int kBytes, int kChains>
constexpr double flop_of() {
  return 2.0 * kChains * kBytes / sizeof(Scalar);
}

template <class Scalar>
double run_128(std::uint64_t rounds) {
  return chains<Scalar, 16, 16>(rounds);
}

#if defined(__x86_64__)
template <class Scalar>
[[gnu::target("avx512f,fma")]] double run_512(std::uint64_t rounds) {
  return chains<Scalar, 64, 16>(rounds);
}
template <class Scalar>
[[gnu::target("avx2,fma")]] double run_256(std::uint64_t rounds) {
  return chains<Scalar, 32, 12>(rounds);
}
template <class Scalar>
double run_sse(std::uint64_t rounds) {
  return chains<Scalar, 16, 12>(rounds);
}
template <class Scalar>
FmaLoop widest() {
  if (__builtin_cpu_supports("avx512f")) return {run_512<Scalar>, flop_of<Scalar, 64, 16>(), "AVX-512 FMA"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {run_256<Scalar>, flop_of<Scalar, 32, 12>(), "AVX2 FMA"};
  return {run_sse<Scalar>, flop_of<Scalar, 16, 12>(), "SSE2 multiplications and additions"};
}

#if (defined(__clang__) && __clang_major__ >= 14) || (!defined(__clang__) && __GNUC__ >= 12)
[[gnu::target("avx512fp16")]] double run_half(std::uint64_t rounds) {
  volatile short start_bits = 0x3c00, factor_bits = 0x0400;  // 1 and 2^-14
  const __m512h factor = _mm512_castsi512_ph(_mm512_set1_epi16(factor_bits));
  __m512h values[16];
  for (int c = 0; c < 16; ++c) values[c] = _mm512_castsi512_ph(_mm512_set1_epi16(start_bits));
  for (std::uint64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 16
    for (int c = 0; c < 16; ++c) values[c] = _mm512_fmadd_ph(values[c], factor, values[c]);
  __m512h sum = values[0];
  for (int c = 1; c < 16; ++c) sum = _mm512_add_ph(sum, values[c]);
  // Not _mm512_reduce_add_ph: in gcc 12's header it reads an uninitialised register, which causes a warning.
  double result = 0;
  for (int lane = 0; lane < 32; ++lane) result += static_cast<double>(sum[lane]);
  return result;
}
FmaLoop half_loop() {
  if (__builtin_cpu_supports("avx512fp16")) return {run_half, 2.0 * 16 * 32, "AVX-512 FP16 FMA"};
  return {nullptr, 0, "this CPU has no arithmetic in fp16: kernels widen to fp32"};
}
#else
FmaLoop half_loop() { return {nullptr, 0, "this build has no fp16 instructions for x86: GCC 12 and Clang 14 have"}; }
#endif

#elif defined(__aarch64__)
template <class Scalar>
FmaLoop widest() {
  return {run_128<Scalar>, flop_of<Scalar, 16, 16>(), "NEON FMA"};
}

// GCC 12 has no _Float16 in C++ on this architecture, and Clang computes __fp16 in float.
#if defined(__clang__)
using Half = _Float16;
#else
using Half = __fp16;
#endif
[[gnu::target("arch=armv8.2-a+fp16")]] double run_half(std::uint64_t rounds) { return chains<Half, 16, 16>(rounds); }
FmaLoop half_loop() {
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0) return {run_half, flop_of<Half, 16, 16>(), "NEON fp16 FMA"};
  return {nullptr, 0, "this CPU has no arithmetic in fp16: kernels widen to fp32"};
}

#else
template <class Scalar>
FmaLoop widest() {
  return {run_128<Scalar>, flop_of<Scalar, 16, 16>(), "128-bit vectors"};
}
FmaLoop half_loop() { return {nullptr, 0, "no fp16 instructions are known for this CPU"}; }
#endif

}  // namespace

void triad(double* __restrict to, const double* __restrict a, const double* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + 3.0 * b[i];
}

FmaLoop fma_loop(Precision precision) {
  switch (precision) {
    case Precision::fp64:
      return widest<double>();
    case Precision::fp32:
      return widest<float>();
    case Precision::fp16:
      return half_loop();
    case Precision::bf16:
      return {nullptr, 0, "CPUs multiply bf16 in dot products only: kernels widen to fp32"};
    case Precision::tf32:
      return {nullptr, 0, "tf32 is for matrix units of GPUs"};
    case Precision::fp8_e4m3:
    case Precision::fp8_e5m2:
      return {nullptr, 0, "CPUs do not compute in fp8: kernels widen to fp32"};
  }
  return {};
}

}  // namespace weir::bench
