// The sum of an array, added up in an order that depends on the size alone: two runs give the same bits. Host part and
// CPU body; the bodies for GPUs are in kernel.cu and kernel.cl.
#include <cmath>
#include <cstdint>
#include <new>

#include "weir/host.h"

namespace {

constexpr std::uint64_t kLanes =
    32;  // independent chains, so that vector units have work while an addition is under way
constexpr std::uint64_t kChunk = 8192;   // summed in lanes; chunks are then added pair by pair, so errors stay small
constexpr std::uint32_t kThreads = 256;  // of a block; as in kernel.cl
constexpr std::uint32_t kPacksPerThread = 8;
constexpr std::uint32_t kMaxBlocks = 1024;

const char* g_error = "";

struct Reduction {
  std::uint64_t count = 0;
  WeirBuffer buffers[3] = {};
  WeirArgument arguments[2][3] = {};
  WeirLaunch launches[2] = {};
};

template <class Real, class Wide>
Wide chunk_sum(const Real* in, std::uint64_t count) {
  Wide lanes[kLanes] = {};
  const std::uint64_t even = count - count % kLanes;
  for (std::uint64_t i = 0; i < even; i += kLanes) {
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<Wide>(in[i + lane]);
  }
  for (std::uint64_t i = even; i < count; ++i) lanes[i - even] += static_cast<Wide>(in[i]);
  for (std::uint64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::uint64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// A binary counter of chunks: level k holds the sum of 2^k of them, or nothing.
template <class Real, class Wide>
Wide tree_sum(const Real* in, std::uint64_t count) {
  Wide levels[64] = {};
  std::uint64_t chunks = 0;
  for (std::uint64_t at = 0; at < count; at += kChunk, ++chunks) {
    Wide sum = chunk_sum<Real, Wide>(in + at, count - at < kChunk ? count - at : kChunk);
    int level = 0;
    for (; (chunks >> level & 1) != 0; ++level) sum += levels[level];
    levels[level] = sum;
  }
  Wide sum = 0;
  for (int level = 0; level < 64; ++level) {
    if ((chunks >> level & 1) != 0) sum += levels[level];
  }
  return sum;
}

int fail(const char* error) {
  g_error = error;
  return 1;
}

int setup(const WeirProblem* problem, WeirSetup* setup, void** out) {
  const double count = weir::parameter(problem, "count");
  if (!(count >= 1 && count <= 0x1p33 && count == std::floor(count)))
    return fail("count must be a whole number, 1 to 2^33");
  auto* state = new (std::nothrow) Reduction;
  if (state == nullptr) return fail("no memory");
  *out = state;
  state->count = static_cast<std::uint64_t>(count);
  const std::uint32_t real_bytes = problem->precision == WEIR_FP64 ? 8 : problem->precision == WEIR_FP32 ? 4 : 2;
  const std::uint64_t block_elements = std::uint64_t{kThreads} * kPacksPerThread * (16 / real_bytes);
  const std::uint64_t wanted = (state->count + block_elements - 1) / block_elements;
  const auto blocks = static_cast<std::uint32_t>(wanted < kMaxBlocks ? wanted : kMaxBlocks);

  // A sum of 16-bit numbers needs more room than one of them has.
  const std::uint32_t sum_type = problem->precision == WEIR_FP64 ? WEIR_F64 : WEIR_F32;
  state->buffers[0] = {"values", WEIR_INPUT, WEIR_REAL, state->count, WEIR_UNIFORM, 0, 1};
  state->buffers[1] = {"sum", WEIR_OUTPUT, sum_type, 1, 0, 0, 0};
  state->buffers[2] = {"block_sums", WEIR_SCRATCH, sum_type, blocks, 0, 0, 0};

  state->arguments[0][0] = weir_buffer(0);
  state->arguments[0][1] = weir_buffer(2);
  state->arguments[0][2] = weir_i64(static_cast<std::int64_t>(state->count));
  state->launches[0] = {"sum_blocks", {blocks, 1, 1}, {kThreads, 1, 1}, 0, 3, state->arguments[0]};
  state->arguments[1][0] = weir_buffer(2);
  state->arguments[1][1] = weir_buffer(1);
  state->arguments[1][2] = weir_i32(static_cast<std::int32_t>(blocks));
  state->launches[1] = {"sum_of_blocks", {1, 1, 1}, {kThreads, 1, 1}, 0, 3, state->arguments[1]};

  setup->buffer_count = problem->backend == WEIR_CPU ? 2 : 3;
  setup->buffers = state->buffers;
  setup->flop = count;
  setup->bytes = count * real_bytes;
  setup->items = count;
  setup->item_name = "elements";
  return 0;
}

int run(void* raw, WeirStream* stream) {
  const auto& state = *static_cast<const Reduction*>(raw);
  if (stream->launch != nullptr) {
    const int failed = stream->launch(stream, &state.launches[0]);
    return failed != 0 ? failed : stream->launch(stream, &state.launches[1]);
  }
  return weir::with_precision(stream->precision, [&](auto zero) {
    using Real = decltype(zero);
    using Wide = weir::Wide<Real>;
    *weir::buffer<Wide>(stream, 1) = tree_sum<Real, Wide>(weir::buffer<const Real>(stream, 0), state.count);
    return 0;
  });
}

// Neumaier's sum: its own error is that of one rounding, whatever the count.
int reference(void* raw, const double* const* inputs, double* const* outputs) {
  const auto& state = *static_cast<const Reduction*>(raw);
  double sum = 0, lost = 0;
  for (std::uint64_t i = 0; i < state.count; ++i) {
    const double value = inputs[0][i];
    const double next = sum + value;
    lost += std::fabs(sum) >= std::fabs(value) ? (sum - next) + value : (value - next) + sum;
    sum = next;
  }
  outputs[1][0] = sum + lost;
  return 0;
}

void teardown(void* raw) { delete static_cast<Reduction*>(raw); }
const char* error() { return g_error; }

constexpr double kCount = 1 << 20;
constexpr WeirParameter kParameters[] = {{"count", 1, &kCount}};
constexpr WeirKernel kKernel = {WEIR_KERNEL_ABI,
                                sizeof(WeirKernel),
                                "sum of an array, the same bits in each run",
                                WEIR_CPU | WEIR_CUDA | WEIR_OPENCL,
                                WEIR_FP64 | WEIR_FP32 | WEIR_FP16 | WEIR_BF16,
                                1,
                                kParameters,
                                setup,
                                nullptr,
                                run,
                                reference,
                                teardown,
                                error};

}  // namespace

extern "C" const WeirKernel* weir_kernel(void) { return &kKernel; }
