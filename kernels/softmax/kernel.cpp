// Softmax of each row of a matrix, stable: the largest value is taken off first. Host part and CPU body; the bodies for
// GPUs are in kernel.cu and kernel.cl.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

#include "weir/host.h"

namespace {

constexpr std::uint64_t kLanes =
    16;  // independent chains, so that the compiler can use vectors without reordering sums
constexpr std::uint32_t kHeldPacks = 4;  // as in kernel.cu: what one thread keeps in registers
constexpr std::uint32_t kMaxThreads = 1024;

const char* g_error = "";

struct Softmax {
  std::uint64_t rows = 0, columns = 0;
  std::vector<double> row_fp64;  // exponentials of the row at hand
  std::vector<float> row;
  WeirBuffer buffers[2] = {};
  WeirArgument arguments[3] = {};
  WeirLaunch launch = {};
};

// exp(x) for x <= 0 within 2 units in the last place, without a call, so that a loop over it becomes vector code.
// Coefficients: Cephes expf.
inline float exponential(float x) {
  // Not below -87, where results are no longer normal numbers. On bits, since compilers make a branch of it on floats.
  constexpr std::uint32_t kLowest = 0xc2ae0000;
  std::uint32_t raised = 0;
  std::memcpy(&raised, &x, sizeof x);
  raised = raised < kLowest ? raised : kLowest;
  std::memcpy(&x, &raised, sizeof x);
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves a whole number
  const float power = (x * 1.44269504F + kRound) - kRound;
  const float rest = (x - power * 0.693359375F) + power * 2.12194440e-4F;
  float sum = 1.9875691500e-4F;
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = sum * rest * rest + rest + 1.0F;
  const std::int32_t bits = (static_cast<std::int32_t>(power) + 127) * (1 << 23);
  float scale = 0;
  std::memcpy(&scale, &bits, sizeof scale);
  return sum * scale;
}
inline double exponential(double x) { return std::exp(x); }

// Numbers whose order is that of the floats: compilers make vector code of a maximum of whole numbers, and of one of
// floats only under -ffast-math. Each is its own inverse.
inline std::int32_t key_of(std::int32_t bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
inline std::int64_t key_of(std::int64_t bits) { return bits ^ (bits >> 63 & 0x7fffffffffffffff); }

template <class Real, class Wide>
Wide largest_of(const Real* in, std::uint64_t columns) {
  using Key = std::conditional_t<sizeof(Wide) == 8, std::int64_t, std::int32_t>;
  Key largest = std::numeric_limits<Key>::min();
  for (std::uint64_t i = 0; i < columns; ++i) {
    const Wide value = in[i];
    Key bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const Key key = key_of(bits);
    largest = key > largest ? key : largest;
  }
  largest = key_of(largest);
  Wide value = 0;
  std::memcpy(&value, &largest, sizeof value);
  return value;
}

template <class Real, class Wide>
void softmax_row(const Real* __restrict in, Real* __restrict out, Wide* __restrict kept, std::uint64_t columns) {
  const Wide largest = largest_of<Real, Wide>(in, columns);
  for (std::uint64_t i = 0; i < columns; ++i) kept[i] = exponential(static_cast<Wide>(in[i]) - largest);

  const std::uint64_t even = columns - columns % kLanes;
  Wide sums[kLanes] = {};
  for (std::uint64_t i = 0; i < even; i += kLanes) {
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) sums[lane] += kept[i + lane];
  }
  for (std::uint64_t i = even; i < columns; ++i) sums[0] += kept[i];
  Wide sum = 0;
  for (const Wide lane : sums) sum += lane;

  const Wide scale = Wide{1} / sum;
  for (std::uint64_t i = 0; i < columns; ++i) out[i] = Real(kept[i] * scale);
}

int fail(const char* error) {
  g_error = error;
  return 1;
}

// Every thread of a block keeps up to kHeldPacks packs of 16 bytes, so a row is read once. Rows that are too long for
// that, or that do not start at 16 bytes, go the slower way.
void plan_launch(Softmax& state, const WeirProblem* problem, std::uint32_t real_bytes) {
  const auto columns = static_cast<std::uint32_t>(state.columns);
  const std::uint32_t packs = (columns * real_bytes + 15) / 16;
  std::uint32_t threads = 32;
  while (threads < kMaxThreads && threads * kHeldPacks < packs) threads *= 2;
  const bool is_held = columns * real_bytes % 16 == 0 && packs <= threads * kHeldPacks;
  state.launch.function = is_held ? "softmax_held" : "softmax_long";
  if (!is_held) threads = 256;
  if (problem->backend == WEIR_OPENCL) {
    state.launch.function = "softmax";
    threads = 128;  // as in kernel.cl
  }
  state.arguments[0] = weir_buffer(0);
  state.arguments[1] = weir_buffer(1);
  state.arguments[2] = weir_i32(static_cast<std::int32_t>(columns));
  state.launch.grid[0] = static_cast<std::uint32_t>(state.rows);
  state.launch.block[0] = threads;
  state.launch.argument_count = 3;
  state.launch.arguments = state.arguments;
}

int setup(const WeirProblem* problem, WeirSetup* setup, void** out) {
  const double rows = weir::parameter(problem, "rows");
  const double columns = weir::parameter(problem, "columns");
  if (!(rows >= 1 && rows <= 1 << 24 && rows == std::floor(rows)))
    return fail("rows must be a whole number, 1 to 2^24");
  if (!(columns >= 1 && columns <= 1 << 24 && columns == std::floor(columns)))
    return fail("columns must be a whole number, 1 to 2^24");
  auto* state = new (std::nothrow) Softmax;
  if (state == nullptr) return fail("no memory");
  *out = state;
  state->rows = static_cast<std::uint64_t>(rows);
  state->columns = static_cast<std::uint64_t>(columns);
  const std::uint64_t count = state->rows * state->columns;
  state->buffers[0] = {"logits", WEIR_INPUT, WEIR_REAL, count, WEIR_NORMAL, 0, 2};
  state->buffers[1] = {"probabilities", WEIR_OUTPUT, WEIR_REAL, count, 0, 0, 0};
  const std::uint32_t real_bytes = problem->precision == WEIR_FP64 ? 8 : problem->precision == WEIR_FP32 ? 4 : 2;
  if (problem->backend != WEIR_CPU) {
    plan_launch(*state, problem, real_bytes);
  } else if (problem->precision == WEIR_FP64) {
    state->row_fp64.resize(state->columns);
  } else {
    state->row.resize(state->columns);
  }
  setup->buffer_count = 2;
  setup->buffers = state->buffers;
  setup->flop = 4.0 * static_cast<double>(count);  // subtract, exponential (as one), add, multiply
  setup->bytes = 2.0 * real_bytes * static_cast<double>(count);
  setup->items = rows;
  setup->item_name = "rows";
  return 0;
}

int run(void* raw, WeirStream* stream) {
  auto& state = *static_cast<Softmax*>(raw);
  if (stream->launch != nullptr) return stream->launch(stream, &state.launch);
  return weir::with_precision(stream->precision, [&](auto zero) {
    using Real = decltype(zero);
    const Real* in = weir::buffer<const Real>(stream, 0);
    Real* out = weir::buffer<Real>(stream, 1);
    for (std::uint64_t row = 0; row < state.rows; ++row) {
      const std::uint64_t at = row * state.columns;
      if constexpr (std::is_same_v<Real, double>) {
        softmax_row(in + at, out + at, state.row_fp64.data(), state.columns);
      } else {
        softmax_row(in + at, out + at, state.row.data(), state.columns);
      }
    }
    return 0;
  });
}

int reference(void* raw, const double* const* inputs, double* const* outputs) {
  const auto& state = *static_cast<const Softmax*>(raw);
  for (std::uint64_t row = 0; row < state.rows; ++row) {
    const double* in = inputs[0] + row * state.columns;
    double* out = outputs[1] + row * state.columns;
    double largest = in[0];
    for (std::uint64_t i = 1; i < state.columns; ++i) largest = std::fmax(largest, in[i]);
    double sum = 0;
    for (std::uint64_t i = 0; i < state.columns; ++i) sum += out[i] = std::exp(in[i] - largest);
    for (std::uint64_t i = 0; i < state.columns; ++i) out[i] /= sum;
  }
  return 0;
}

void teardown(void* raw) { delete static_cast<Softmax*>(raw); }
const char* error() { return g_error; }

constexpr double kRows = 1024, kColumns = 1024;
constexpr WeirParameter kParameters[] = {{"rows", 1, &kRows}, {"columns", 1, &kColumns}};
constexpr WeirKernel kKernel = {WEIR_KERNEL_ABI,
                                sizeof(WeirKernel),
                                "softmax of each row of a matrix",
                                WEIR_CPU | WEIR_CUDA | WEIR_OPENCL,
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
