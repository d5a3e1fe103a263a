// Many complex Fourier transforms of one length, a power of two, by Stockham's method: no reordering, and each pass
// reads and writes in order. Numbers are stored as pairs (real, imaginary). Host part and CPU body; the body for CUDA
// is in kernel.cu.
#include <cmath>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/host.h"

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr std::uint32_t kMin = 16, kMax = 4096;
constexpr std::uint32_t kBlockThreads = 128;
constexpr std::uint32_t kHeld = 8;  // as in kernel.cu: what one thread keeps in registers

const char* g_error = "";

// What the CPU body keeps, in the type that it computes in. Real and imaginary parts lie apart, for vector code.
template <class Wide>
struct Workspace {
  std::vector<Wide> real[2], imaginary[2];  // a pass reads one side and writes the other
  std::vector<Wide> turns;  // by pass: exp(-2 pi i p / n) for all p, its square, its cube; real parts, then imaginary

  void prepare(std::size_t length) {
    for (int side = 0; side < 2; ++side) {
      real[side].resize(length);
      imaginary[side].resize(length);
    }
    for (std::size_t n = length; n >= 4; n /= 4) {
      for (std::size_t power = 1; power <= 3; ++power) {
        const auto angle = [&](std::size_t p) {
          return -2 * kPi * static_cast<double>(power * p) / static_cast<double>(n);
        };
        for (std::size_t p = 0; p < n / 4; ++p) turns.push_back(static_cast<Wide>(std::cos(angle(p))));
        for (std::size_t p = 0; p < n / 4; ++p) turns.push_back(static_cast<Wide>(std::sin(angle(p))));
      }
    }
  }
};

struct Transforms {
  std::uint32_t length = 0, batch = 0;
  Workspace<double> wide;
  Workspace<float> single;
  WeirBuffer buffers[2] = {};
  WeirArgument arguments[4] = {};
  WeirLaunch launch = {};
};

// One pass of radix 4 over `length` numbers: those a quarter of the length apart go in, and come out `stride` apart,
// turned for the next pass. A stride that is known when this is compiled makes short loops vector code: 1 in the first
// pass, 4 in the second; 0: any other.
template <std::size_t kStride, class Wide>
void pass_of_four(const Wide* __restrict in_re, const Wide* __restrict in_im, Wide* __restrict out_re,
                  Wide* __restrict out_im, const Wide* __restrict turns, std::size_t length, std::size_t any_stride) {
  const std::size_t stride = kStride != 0 ? kStride : any_stride;
  const std::size_t quarter = length / 4, parts = quarter / stride;
  for (std::size_t p = 0; p < parts; ++p) {
    const Wide w1_re = turns[p], w1_im = turns[parts + p];
    const Wide w2_re = turns[2 * parts + p], w2_im = turns[3 * parts + p];
    const Wide w3_re = turns[4 * parts + p], w3_im = turns[5 * parts + p];
    for (std::size_t q = 0; q < stride; ++q) {
      const std::size_t in = stride * p + q, out = 4 * stride * p + q;
      const Wide a_re = in_re[in], a_im = in_im[in];
      const Wide b_re = in_re[in + quarter], b_im = in_im[in + quarter];
      const Wide c_re = in_re[in + 2 * quarter], c_im = in_im[in + 2 * quarter];
      const Wide d_re = in_re[in + 3 * quarter], d_im = in_im[in + 3 * quarter];
      const Wide sum_ac_re = a_re + c_re, sum_ac_im = a_im + c_im;
      const Wide sum_bd_re = b_re + d_re, sum_bd_im = b_im + d_im;
      // a - c, and b - d times -i: (re, im) becomes (im, -re).
      const Wide dif_ac_re = a_re - c_re, dif_ac_im = a_im - c_im;
      const Wide dif_bd_re = b_im - d_im, dif_bd_im = d_re - b_re;
      const Wide y1_re = dif_ac_re + dif_bd_re, y1_im = dif_ac_im + dif_bd_im;
      const Wide y2_re = sum_ac_re - sum_bd_re, y2_im = sum_ac_im - sum_bd_im;
      const Wide y3_re = dif_ac_re - dif_bd_re, y3_im = dif_ac_im - dif_bd_im;
      out_re[out] = sum_ac_re + sum_bd_re;
      out_im[out] = sum_ac_im + sum_bd_im;
      out_re[out + stride] = y1_re * w1_re - y1_im * w1_im;
      out_im[out + stride] = y1_re * w1_im + y1_im * w1_re;
      out_re[out + 2 * stride] = y2_re * w2_re - y2_im * w2_im;
      out_im[out + 2 * stride] = y2_re * w2_im + y2_im * w2_re;
      out_re[out + 3 * stride] = y3_re * w3_re - y3_im * w3_im;
      out_im[out + 3 * stride] = y3_re * w3_im + y3_im * w3_re;
    }
  }
}

// The last pass where the length is no power of four.
template <class Wide>
void pass_of_two(const Wide* __restrict in_re, const Wide* __restrict in_im, Wide* __restrict out_re,
                 Wide* __restrict out_im, std::size_t half) {
  for (std::size_t q = 0; q < half; ++q) {
    out_re[q] = in_re[q] + in_re[q + half];
    out_im[q] = in_im[q] + in_im[q + half];
    out_re[q + half] = in_re[q] - in_re[q + half];
    out_im[q + half] = in_im[q] - in_im[q + half];
  }
}

template <class Real, class Wide>
void transform(const Real* __restrict in, Real* __restrict out, Workspace<Wide>& work, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    work.real[0][i] = static_cast<Wide>(in[2 * i]);
    work.imaginary[0][i] = static_cast<Wide>(in[2 * i + 1]);
  }
  int side = 0;
  const Wide* turns = work.turns.data();
  std::size_t stride = 1;
  for (; stride * 4 <= length; stride *= 4, side ^= 1) {
    const auto pass = stride == 1 ? pass_of_four<1, Wide> : stride == 4 ? pass_of_four<4, Wide> : pass_of_four<0, Wide>;
    pass(work.real[side].data(), work.imaginary[side].data(), work.real[side ^ 1].data(),
         work.imaginary[side ^ 1].data(), turns, length, stride);
    turns += 6 * (length / stride / 4);
  }
  if (stride < length) {
    pass_of_two(work.real[side].data(), work.imaginary[side].data(), work.real[side ^ 1].data(),
                work.imaginary[side ^ 1].data(), length / 2);
    side ^= 1;
  }
  const Wide* real = work.real[side].data();
  const Wide* imaginary = work.imaginary[side].data();
  for (std::size_t i = 0; i < length; ++i) {
    out[2 * i] = Real(real[i]);
    out[2 * i + 1] = Real(imaginary[i]);
  }
}

int fail(const char* error) {
  g_error = error;
  return 1;
}

// Small transforms share a block. Two arrays in shared memory, with a gap after each 8 numbers against bank conflicts.
void plan_launch(Transforms& state, std::uint32_t wide_bytes) {
  const std::uint32_t threads = state.length / kHeld;
  const std::uint32_t together = threads < kBlockThreads ? kBlockThreads / threads : 1;
  state.arguments[0] = weir_buffer(0);
  state.arguments[1] = weir_buffer(1);
  state.arguments[2] = weir_i32(static_cast<std::int32_t>(state.length));
  state.arguments[3] = weir_i32(static_cast<std::int32_t>(state.batch));
  state.launch = {"fft",
                  {(state.batch + together - 1) / together, 1, 1},
                  {threads, together, 1},
                  2 * together * (state.length + state.length / 8) * wide_bytes,
                  4,
                  state.arguments};
}

int setup(const WeirProblem* problem, WeirSetup* setup, void** out) {
  const double length = weir::parameter(problem, "length");
  const double batch = weir::parameter(problem, "batch");
  int power = 0;
  if (!(length >= kMin && length <= kMax) || std::frexp(length, &power) != 0.5)
    return fail("length must be a power of two from 16 to 4096");
  const bool is_fp64 = problem->precision == WEIR_FP64;
  if (is_fp64 && problem->backend == WEIR_CUDA && length > 2048)
    return fail("length must be at most 2048 for fp64 on CUDA: a block has 48 KiB of shared memory");
  if (!(batch >= 1 && batch <= 1 << 24 && batch == std::floor(batch)))
    return fail("batch must be a whole number, 1 to 2^24");
  auto* state = new (std::nothrow) Transforms;
  if (state == nullptr) return fail("no memory");
  *out = state;
  state->length = static_cast<std::uint32_t>(length);
  state->batch = static_cast<std::uint32_t>(batch);
  const std::uint64_t count = 2 * std::uint64_t{state->length} * state->batch;
  state->buffers[0] = {"signal", WEIR_INPUT, WEIR_REAL, count, WEIR_NORMAL, 0, 1};
  state->buffers[1] = {"spectrum", WEIR_OUTPUT, WEIR_REAL, count, 0, 0, 0};
  if (problem->backend == WEIR_CUDA) {
    plan_launch(*state, is_fp64 ? 8 : 4);
  } else if (is_fp64) {
    state->wide.prepare(state->length);
  } else {
    state->single.prepare(state->length);
  }
  const double real_bytes = is_fp64 ? 8 : problem->precision == WEIR_FP32 ? 4 : 2;
  setup->buffer_count = 2;
  setup->buffers = state->buffers;
  setup->flop = 5 * length * std::log2(length) * batch;  // as is usual for transforms, whatever the radix
  setup->bytes = 2 * real_bytes * static_cast<double>(count);
  setup->items = batch;
  setup->item_name = "transforms";
  return 0;
}

int run(void* raw, WeirStream* stream) {
  auto& state = *static_cast<Transforms*>(raw);
  if (stream->launch != nullptr) return stream->launch(stream, &state.launch);
  return weir::with_precision(stream->precision, [&](auto zero) {
    using Real = decltype(zero);
    const Real* in = weir::buffer<const Real>(stream, 0);
    Real* spectrum = weir::buffer<Real>(stream, 1);
    for (std::size_t i = 0; i < state.batch; ++i) {
      const std::size_t at = 2 * i * state.length;
      if constexpr (std::is_same_v<Real, double>) {
        transform(in + at, spectrum + at, state.wide, state.length);
      } else {
        transform(in + at, spectrum + at, state.single, state.length);
      }
    }
    return 0;
  });
}

// Another method than the one that is measured: radix 2 in place, after a reordering by reversed bits.
void transform_plainly(double* pairs, std::size_t length) {
  for (std::size_t i = 1, j = 0; i < length; ++i) {
    std::size_t bit = length / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    std::swap(pairs[2 * i], pairs[2 * j]);
    std::swap(pairs[2 * i + 1], pairs[2 * j + 1]);
  }
  std::vector<double> turns(length);
  for (std::size_t i = 0; i < length / 2; ++i) {
    turns[2 * i] = std::cos(-2 * kPi * static_cast<double>(i) / static_cast<double>(length));
    turns[2 * i + 1] = std::sin(-2 * kPi * static_cast<double>(i) / static_cast<double>(length));
  }
  for (std::size_t half = 1; half < length; half *= 2) {
    for (std::size_t start = 0; start < length; start += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const double* turn = &turns[2 * i * (length / half / 2)];
        double *a = &pairs[2 * (start + i)], *b = &pairs[2 * (start + i + half)];
        const double re = b[0] * turn[0] - b[1] * turn[1], im = b[0] * turn[1] + b[1] * turn[0];
        b[0] = a[0] - re;
        b[1] = a[1] - im;
        a[0] += re;
        a[1] += im;
      }
    }
  }
}

int reference(void* raw, const double* const* inputs, double* const* outputs) {
  const auto& state = *static_cast<const Transforms*>(raw);
  const std::size_t size = 2 * std::size_t{state.length};
  for (std::size_t i = 0; i < size * state.batch; ++i) outputs[1][i] = inputs[0][i];
  for (std::size_t i = 0; i < state.batch; ++i) transform_plainly(outputs[1] + i * size, state.length);
  return 0;
}

void teardown(void* raw) { delete static_cast<Transforms*>(raw); }
const char* error() { return g_error; }

constexpr double kLength = 1024, kBatch = 64;
constexpr WeirParameter kParameters[] = {{"length", 1, &kLength}, {"batch", 1, &kBatch}};
constexpr WeirKernel kKernel = {WEIR_KERNEL_ABI,
                                sizeof(WeirKernel),
                                "complex Fourier transforms of one length",
                                WEIR_CPU | WEIR_CUDA,
                                WEIR_FP64 | WEIR_FP32 | WEIR_FP16 | WEIR_BF16,
                                2,
                                kParameters,
                                setup,
                                nullptr,
                                run,
                                reference,
                                teardown,
                                error};

}  // namespace

extern "C" const WeirKernel* weir_kernel(void) { return &kKernel; }
