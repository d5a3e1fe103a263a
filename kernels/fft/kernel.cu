// Complex Fourier transforms on CUDA. A transform of length n has n / 8 threads; each keeps 8 numbers in registers, and
// between passes they change places through shared memory. Global memory is read once and written once, in order.
#include "weir/device.h"

namespace {

constexpr int kHeld = 8;  // as in kernel.cpp

struct Complex {
  weir_acc re, im;
};
struct alignas(2 * sizeof(weir_real)) Pair {
  weir_real re, im;
};

__device__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
__device__ Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
__device__ Complex times_minus_i(Complex a) { return {a.im, -a.re}; }

__device__ void transform_two(Complex& a, Complex& b) {
  const Complex sum = a + b;
  b = a - b;
  a = sum;
}

__device__ void transform_four(Complex& a, Complex& b, Complex& c, Complex& d) {
  const Complex ac = a + c, bd = b + d, a_c = a - c, b_d = times_minus_i(b - d);
  a = ac + bd;
  b = a_c + b_d;
  c = ac - bd;
  d = a_c - b_d;
}

__device__ void transform_eight(Complex (&u)[8]) {
  transform_four(u[0], u[2], u[4], u[6]);
  transform_four(u[1], u[3], u[5], u[7]);
  const weir_acc root = (weir_acc)0.70710678118654752440;
  const Complex odd1 = {root * (u[3].re + u[3].im), root * (u[3].im - u[3].re)};
  const Complex odd2 = times_minus_i(u[5]);
  const Complex odd3 = {root * (u[7].im - u[7].re), -root * (u[7].re + u[7].im)};
  const Complex even[4] = {u[0], u[2], u[4], u[6]}, odd[4] = {u[1], odd1, odd2, odd3};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    u[k] = even[k] + odd[k];
    u[k + 4] = even[k] - odd[k];
  }
}

template <int kRadix>
__device__ void transform(Complex (&u)[kRadix]) {
  if constexpr (kRadix == 2) transform_two(u[0], u[1]);
  if constexpr (kRadix == 4) transform_four(u[0], u[1], u[2], u[3]);
  if constexpr (kRadix == 8) transform_eight(u);
}

// A thread holds the numbers at thread + i * n / 8, which are those of 8 / kRadix butterflies of the pass. `done` is
// the length of the transforms that earlier passes have put together.
template <int kRadix>
__device__ void pass(Complex (&held)[kHeld], int thread, int threads, int done) {
  constexpr int kButterflies = kHeld / kRadix;
#pragma unroll
  for (int m = 0; m < kButterflies; ++m) {
    Complex u[kRadix];
#pragma unroll
    for (int k = 0; k < kRadix; ++k) u[k] = held[m + k * kButterflies];
    if (done > 1) {
      const int within = (thread + m * threads) & (done - 1);
      Complex turn;
      sincospi((weir_acc)(-2 * within) / (weir_acc)(done * kRadix), &turn.im, &turn.re);
      Complex power = turn;
#pragma unroll
      for (int k = 1; k < kRadix; ++k) {
        u[k] = u[k] * power;
        power = power * turn;
      }
    }
    transform<kRadix>(u);
#pragma unroll
    for (int k = 0; k < kRadix; ++k) held[m + k * kButterflies] = u[k];
  }
}

// A gap after each 8 numbers: writes of a pass are 8 apart, and would meet in the same banks.
__device__ int place(int index) { return index + index / 8; }

// Results of a pass go where the next one expects them.
template <int kRadix>
__device__ void exchange(Complex (&held)[kHeld], weir_acc* re, weir_acc* im, int thread, int threads, int done) {
  constexpr int kButterflies = kHeld / kRadix;
  __syncthreads();  // reads of the exchange before are done
#pragma unroll
  for (int m = 0; m < kButterflies; ++m) {
    const int butterfly = thread + m * threads;
    const int within = butterfly & (done - 1);
    const int start = (butterfly - within) * kRadix + within;
#pragma unroll
    for (int k = 0; k < kRadix; ++k) {
      re[place(start + k * done)] = held[m + k * kButterflies].re;
      im[place(start + k * done)] = held[m + k * kButterflies].im;
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    held[i].re = re[place(thread + i * threads)];
    held[i].im = im[place(thread + i * threads)];
  }
}

}  // namespace

// blockDim.x is length / 8; blockDim.y transforms share a block. All threads stay to the end, for the barriers.
extern "C" __global__ void fft(const weir_real* __restrict__ in, weir_real* __restrict__ out, int length, int batch) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int padded = length + length / 8;
  weir_acc* re = reinterpret_cast<weir_acc*>(shared) + 2 * padded * threadIdx.y;
  weir_acc* im = re + padded;
  const int thread = threadIdx.x, threads = blockDim.x;
  const long long transform_index = (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const bool is_in = transform_index < batch;
  const Pair* from = reinterpret_cast<const Pair*>(in) + transform_index * length;
  Pair* to = reinterpret_cast<Pair*>(out) + transform_index * length;

  Complex held[kHeld] = {};
  if (is_in) {
    Pair loaded[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i) loaded[i] = from[thread + i * threads];
#pragma unroll
    for (int i = 0; i < kHeld; ++i) held[i] = {weir_widen(loaded[i].re), weir_widen(loaded[i].im)};
  }

  // length is 1, 2 or 4 times a power of 8. The odd factor goes first.
  int done = 1;
  const int bits = 31 - __clz(length);
  if (bits % 3 == 1) {
    pass<2>(held, thread, threads, done);
    exchange<2>(held, re, im, thread, threads, done);
    done = 2;
  } else if (bits % 3 == 2) {
    pass<4>(held, thread, threads, done);
    exchange<4>(held, re, im, thread, threads, done);
    done = 4;
  }
  for (;;) {
    pass<8>(held, thread, threads, done);
    if (done * 8 == length) break;
    exchange<8>(held, re, im, thread, threads, done);
    done *= 8;
  }

  // After the last pass number i of a thread belongs at thread + i * n / 8 again.
  if (!is_in) return;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) to[thread + i * threads] = {weir_narrow(held[i].re), weir_narrow(held[i].im)};
}
