// How many values of an array fall into each of `bins` equal parts of [0, 1); what lies outside counts in the first or
// the last. Counts are whole numbers and must be exact. Host part and CPU body; the bodies for GPUs are in kernel.cu
// and kernel.cl.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "weir/host.h"

namespace {

constexpr std::uint64_t kChunk = 2048;   // values whose bins are found at once, in vector code, before they are counted
constexpr std::uint64_t kTables = 4;     // so that equal neighbours do not wait for each other's count
constexpr std::uint32_t kThreads = 256;  // of a block; as in kernel.cl
constexpr std::uint32_t kPacksPerThread = 4;
constexpr std::uint32_t kMaxBlocks = 1024;
constexpr std::uint32_t kMaxBins = 4096;              // as in kernel.cl
constexpr std::uint32_t kSharedBytes = kMaxBins * 8;  // below the 48 KiB that every CUDA device gives a block

const char* g_error = "";

struct Histogram {
  std::uint64_t count = 0;
  std::uint32_t bins = 0;
  std::vector<std::uint32_t> tables;
  WeirBuffer buffers[2] = {};
  WeirArgument clear_arguments[2] = {};
  WeirArgument count_arguments[5] = {};
  WeirLaunch clear = {}, count_values = {};
};

// `bins` is a power of two, so the product is exact and every precision and backend finds the same bin.
template <class Real>
void find_bins(const Real* __restrict in, std::int32_t* __restrict found, std::uint64_t count, std::int32_t bins) {
  using Wide = weir::Wide<Real>;
  const auto scale = static_cast<Wide>(bins);
  const std::int32_t last = bins - 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto bin = static_cast<std::int32_t>(static_cast<Wide>(in[i]) * scale);
    bin = bin < 0 ? 0 : bin;
    found[i] = bin > last ? last : bin;
  }
}

template <class Real>
void histogram(Histogram& state, const Real* in, std::uint32_t* out) {
  std::uint32_t* tables = state.tables.data();
  const std::uint64_t bins = state.bins;
  std::memset(tables, 0, state.tables.size() * sizeof *tables);
  std::int32_t found[kChunk];
  for (std::uint64_t at = 0; at < state.count; at += kChunk) {
    const std::uint64_t count = state.count - at < kChunk ? state.count - at : kChunk;
    find_bins(in + at, found, count, static_cast<std::int32_t>(bins));
    std::uint64_t i = 0;
    for (; i + kTables <= count; i += kTables) {
      for (std::uint64_t table = 0; table < kTables; ++table)
        ++tables[table * bins + static_cast<std::uint32_t>(found[i + table])];
    }
    for (; i < count; ++i) ++tables[found[i]];
  }
  for (std::uint64_t bin = 0; bin < bins; ++bin) {
    std::uint32_t sum = 0;
    for (std::uint64_t table = 0; table < kTables; ++table) sum += tables[table * bins + bin];
    out[bin] = sum;
  }
}

int fail(const char* error) {
  g_error = error;
  return 1;
}

void plan_launches(Histogram& state, const WeirProblem* problem, std::uint32_t real_bytes) {
  const std::uint64_t block_elements = std::uint64_t{kThreads} * kPacksPerThread * (16 / real_bytes);
  const std::uint64_t wanted = (state.count + block_elements - 1) / block_elements;
  const auto blocks = static_cast<std::uint32_t>(wanted < kMaxBlocks ? wanted : kMaxBlocks);
  // One table per warp where there is room: fewer threads want the same counter. OpenCL has one of a fixed size.
  const std::uint32_t room = kSharedBytes / (state.bins * 4);
  const std::uint32_t copies = room < kThreads / 32 ? room : kThreads / 32;
  const bool is_opencl = problem->backend == WEIR_OPENCL;

  state.clear_arguments[0] = weir_buffer(1);
  state.clear_arguments[1] = weir_i32(static_cast<std::int32_t>(state.bins));
  state.clear = {
      "clear", {(state.bins + kThreads - 1) / kThreads, 1, 1}, {kThreads, 1, 1}, 0, 2, state.clear_arguments};
  state.count_arguments[0] = weir_buffer(0);
  state.count_arguments[1] = weir_buffer(1);
  state.count_arguments[2] = weir_i64(static_cast<std::int64_t>(state.count));
  state.count_arguments[3] = weir_i32(static_cast<std::int32_t>(state.bins));
  state.count_arguments[4] = weir_i32(static_cast<std::int32_t>(copies));
  state.count_values = {"count_values",      {blocks, 1, 1},
                        {kThreads, 1, 1},    is_opencl ? 0 : copies * state.bins * 4,
                        is_opencl ? 4U : 5U, state.count_arguments};
}

int setup(const WeirProblem* problem, WeirSetup* setup, void** out) {
  const double count = weir::parameter(problem, "count");
  const double bins = weir::parameter(problem, "bins");
  if (!(count >= 1 && count < 0x1p32 && count == std::floor(count)))
    return fail("count must be a whole number from 1 to 2^32 - 1: counters have 32 bits");
  int power = 0;
  if (!(bins >= 2 && bins <= kMaxBins) || std::frexp(bins, &power) != 0.5)
    return fail("bins must be a power of two from 2 to 4096");
  auto* state = new (std::nothrow) Histogram;
  if (state == nullptr) return fail("no memory");
  *out = state;
  state->count = static_cast<std::uint64_t>(count);
  state->bins = static_cast<std::uint32_t>(bins);
  const std::uint32_t real_bytes = problem->precision == WEIR_FP64 ? 8 : problem->precision == WEIR_FP32 ? 4 : 2;
  // A bell over the middle: some counters are wanted far more often than others.
  state->buffers[0] = {"values", WEIR_INPUT, WEIR_REAL, state->count, WEIR_NORMAL, 0.5, 0.15};
  state->buffers[1] = {"counts", WEIR_OUTPUT, WEIR_U32, state->bins, 0, 0, 0};
  if (problem->backend == WEIR_CPU) {
    state->tables.resize(kTables * state->bins);
  } else {
    plan_launches(*state, problem, real_bytes);
  }
  setup->buffer_count = 2;
  setup->buffers = state->buffers;
  setup->flop = count;  // one product each
  setup->bytes = count * real_bytes + bins * 4;
  setup->items = count;
  setup->item_name = "elements";
  return 0;
}

int run(void* raw, WeirStream* stream) {
  auto& state = *static_cast<Histogram*>(raw);
  if (stream->launch != nullptr) {
    const int failed = stream->launch(stream, &state.clear);
    return failed != 0 ? failed : stream->launch(stream, &state.count_values);
  }
  return weir::with_precision(stream->precision, [&](auto zero) {
    histogram(state, weir::buffer<const decltype(zero)>(stream, 0), weir::buffer<std::uint32_t>(stream, 1));
    return 0;
  });
}

int reference(void* raw, const double* const* inputs, double* const* outputs) {
  const auto& state = *static_cast<const Histogram*>(raw);
  for (std::uint32_t bin = 0; bin < state.bins; ++bin) outputs[1][bin] = 0;
  for (std::uint64_t i = 0; i < state.count; ++i) {
    const double bin = std::floor(inputs[0][i] * state.bins);
    outputs[1][bin < 0 ? 0 : bin >= state.bins ? state.bins - 1 : static_cast<std::uint32_t>(bin)] += 1;
  }
  return 0;
}

void teardown(void* raw) { delete static_cast<Histogram*>(raw); }
const char* error() { return g_error; }

constexpr double kCount = 1 << 20, kBins = 256;
constexpr WeirParameter kParameters[] = {{"count", 1, &kCount}, {"bins", 1, &kBins}};
constexpr WeirKernel kKernel = {WEIR_KERNEL_ABI,
                                sizeof(WeirKernel),
                                "histogram of values in [0, 1), exact counts",
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
