// Kernels of packages on a real CUDA GPU: every precision, cold runs, memory, energy, the driver's errors, libraries
// that launch by themselves. Times are printed and not judged. Skipped where there is no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "device/gpu/compiler.h"
#include "device/gpu/context.h"
#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"
#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/scale_package.h"
#include "measure/statistics.h"

namespace weir::testing {
namespace {

using namespace package;
using ::testing::Test;

class PackageOnGpu : public Test {
 protected:
  void SetUp() override {
    std::string reason;
    api_ = cuda_api(&reason);
    if (api_ == nullptr) GTEST_SKIP() << reason;
    if (const auto found = find_gpus(*api_); found.names.empty()) GTEST_SKIP() << found.reason;
    if (open_nvrtc(&reason) == nullptr) GTEST_SKIP() << reason;
  }
  static std::unique_ptr<OpenPackage> open() {
    return package::open_gpu(scale_host(), Backend::cuda, {"kernel.cu", kScaleCuda, {}, ""}, build_options());
  }
  static std::string failure(Mode mode) {
    return message_of([&] {
      const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32, mode));
      kernel->run(1);
      kernel->run(1);
    });
  }
  const GpuApi* api_ = nullptr;
};

TEST_F(PackageOnGpu, each_precision_is_computed_in_that_precision) {
  const auto package = open();
  double before = 0;
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(name_of(precision));
    const auto kernel = package->prepare(scale_case(Backend::cuda, precision, Mode::right, 100'000));
    const Checked checked = kernel->check();
    EXPECT_TRUE(checked.faults.empty()) << checked.faults[0];
    const double error = error_of(checked);
    fmt::print("{}: error {:.3g} of the largest value\n", name_of(precision), error);
    EXPECT_LE(error, 2 * rounding_of(precision));
    if (precision != Precision::fp64) {
      EXPECT_GT(error, 0.1 * rounding_of(precision));
      EXPECT_GT(error, before);
    }
    before = error;
    EXPECT_EQ(kernel->how(), "nvrtc");
    EXPECT_EQ(kernel->launches_per_run(), 1u);
  }
}

TEST_F(PackageOnGpu, not_a_number_stays_that_in_every_precision) {
  for (const Precision precision : kPrecisions) {
    const auto kernel = open()->prepare(scale_case(Backend::cuda, precision, Mode::not_a_number));
    EXPECT_TRUE(std::isnan(error_of(kernel->check()))) << name_of(precision);
  }
}

TEST_F(PackageOnGpu, what_run_does_wrong_is_said_with_the_drivers_words) {
  const std::pair<Mode, const char*> kCases[] = {
      {Mode::unknown_function, "function 'no_such_function' is not in the device source (CUDA error 500"},
      {Mode::hides_error, "function 'no_such_function' is not in the device source"},
      {Mode::launches_nothing, "scale ran nothing on cuda:0"},
      {Mode::launches_once, "scale ran nothing on cuda:0"},
      {Mode::huge_block, "CUDA error 1 "},
      {Mode::throws, "thrown by run"},
  };
  for (const auto& [mode, words] : kCases) {
    const std::string text = failure(mode);
    EXPECT_NE(text.find(words), std::string::npos) << words << ": " << text;
  }
  if (api_->function_parameter == nullptr) GTEST_SKIP() << "this driver does not tell of parameters";
  EXPECT_NE(failure(Mode::wrong_size).find("takes 4 bytes as argument 2, and 8 were given"), std::string::npos)
      << failure(Mode::wrong_size);
  EXPECT_NE(failure(Mode::too_few_arguments).find("takes 5 arguments, and 3 were given"), std::string::npos)
      << failure(Mode::too_few_arguments);
}

TEST_F(PackageOnGpu, what_was_not_written_and_what_must_not_be_are_faults) {
  const auto hole = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::leaves_a_hole));
  hole->run(3);
  EXPECT_TRUE(std::isnan(hole->check().outputs[0].actual[999]));
  const auto spoils = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::writes_input));
  EXPECT_FALSE(spoils->check().faults.empty());
}

TEST_F(PackageOnGpu, memory_and_telemetry_are_the_devices) {
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::right, 1 << 24));
  kernel->run(1);
  const KernelMemory memory = kernel->memory();
  ASSERT_TRUE(memory.allocated_bytes);
  EXPECT_EQ(*memory.allocated_bytes, (std::uint64_t{8} << 24) + 16);
  if (memory.peak_bytes) {
    fmt::print("allocated {} bytes, peak {} bytes\n", *memory.allocated_bytes, *memory.peak_bytes);
    EXPECT_GE(*memory.peak_bytes, *memory.allocated_bytes);
  } else {
    EXPECT_FALSE(memory.reason.empty());
  }
  const Telemetry before = kernel->telemetry();
  for (int i = 0; i < 20; ++i) kernel->run(2000);
  const Telemetry after = kernel->telemetry();
  if (!before.energy_j || !after.energy_j) GTEST_SKIP() << "the board has no energy counter";
  fmt::print("{} J in 40000 runs, {} W, {} MHz\n", *after.energy_j - *before.energy_j, after.power_w.value_or(-1),
             after.clock_mhz.value_or(-1));
  EXPECT_GT(*after.energy_j, *before.energy_j);
}

// 32 MiB: fits the caches of a large GPU, so that a cold run has to be slower there.
TEST_F(PackageOnGpu, cold_runs_are_printed_beside_hot_ones) {
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::right, 1 << 22));
  ASSERT_EQ(kernel->cold_reason(), "");
  std::vector<double> hot, cold;
  kernel->run(100);
  for (int i = 0; i < 30; ++i) {
    hot.push_back(kernel->run(100).device_ns / 100);
    cold.push_back(kernel->run_cold().device_ns);
  }
  fmt::print("hot {:.2f} us, cold {:.2f} us\n", median(hot) * 1e-3, median(cold) * 1e-3);
  EXPECT_GT(median(cold), 0);
  EXPECT_GT(median(hot), 0);
}

// The same function launched by hand through the driver, in turn with ReadyKernel::run().
TEST_F(PackageOnGpu, medians_are_printed_beside_those_of_a_plain_loop) {
  constexpr int kCount = 1 << 24, kRuns = 200, kRounds = 21;
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::right, kCount));

  PrimaryContext context(*api_, 0);
  context.enter();
  GpuFacts facts;
  check(*api_, api_->facts(0, &facts), "asking for facts");
  GpuSource source{.name = "kernel.cu", .text = kScaleCuda, .headers = {}, .options = {"-DWEIR_PRECISION=2"}};
  for (const EmbeddedHeader& header : embedded_headers())
    source.headers.emplace_back("weir/" + std::string(header.name), header.text);
  const std::string image = open_nvrtc(nullptr)->compile(source, facts.architecture);
  GpuModule module = nullptr;
  check(*api_, api_->module_load(&module, image.data()), "loading");
  const GpuModuleOwner module_owner(module, {api_});
  GpuFunction function = nullptr;
  check(*api_, api_->function_get(&function, module, "scale"), "finding the function");
  GpuPointer x = 0, y = 0;
  check(*api_, api_->memory_allocate(&x, kCount * sizeof(float)), "allocating");
  const GpuMemoryOwner x_owner(x, {api_});
  check(*api_, api_->memory_allocate(&y, kCount * sizeof(float)), "allocating");
  const GpuMemoryOwner y_owner(y, {api_});
  const GpuStreamOwner stream = make_stream(*api_, 0);
  check(*api_, api_->set_32(x, 0x3f000000, kCount, stream.get()), "filling");
  const GpuEventOwner began = make_event(*api_, kGpuEventTiming), ended = make_event(*api_, kGpuEventTiming);
  const auto by_hand = [&] {
    int count = kCount;
    float factor = 1.5f;
    double offset = 0.25;
    void* parameters[] = {&x, &y, &count, &factor, &offset};
    int result = api_->event_record(began.get(), stream.get());
    for (int i = 0; i < kRuns && result == 0; ++i)
      result = api_->launch(function, (kCount + 63) / 64, 1, 1, 64, 1, 1, 0, stream.get(), parameters, nullptr);
    if (result == 0) result = api_->event_record(ended.get(), stream.get());
    if (result == 0) result = api_->event_synchronize(ended.get());
    float milliseconds = 0;
    if (result == 0) result = api_->event_elapsed(&milliseconds, began.get(), ended.get());
    check(*api_, result, "the plain loop");
    return milliseconds * 1e6 / kRuns;
  };
  const auto by_weir = [&] { return kernel->run(kRuns).device_ns / kRuns; };
  by_hand();
  by_weir();
  std::vector<double> plain, weir;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 2 == 0) plain.push_back(by_hand());
    weir.push_back(by_weir());
    if (round % 2 != 0) plain.push_back(by_hand());
  }
  fmt::print("plain loop {:.3f} us, weir {:.3f} us, ratio {:.4f}\n", median(plain) * 1e-3, median(weir) * 1e-3,
             median(weir) / median(plain));
}

// A library that calls the driver by itself: on the stream that it is given, and by mistake on the default stream.
constexpr const char* kLibrary = R"~(
#include <dlfcn.h>
#include <weir/kernel.h>
namespace {
using Set = int (*)(unsigned long long, unsigned, size_t, void*);
Set g_set;
bool g_is_default;
const double g_default[] = {0}, g_number[] = {1 << 24};
const WeirParameter g_parameters[] = {{"default_stream", 1, g_default}, {"count", 1, g_number}};
WeirBuffer g_buffer;
int setup(const WeirProblem* problem, WeirSetup* setup, void** state) {
  g_set = (Set)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemsetD32Async");
  g_is_default = problem->parameters[0].values[0] != 0;
  g_buffer = {"out", WEIR_OUTPUT, WEIR_I32, (uint64_t)problem->parameters[1].values[0], 0, 0, 0};
  setup->buffer_count = 1;
  setup->buffers = &g_buffer;
  *state = &g_buffer;
  return g_set == nullptr;
}
int run(void*, WeirStream* stream) {
  if (stream->launch != nullptr) return 99;
  return g_set((unsigned long long)stream->buffers[0], 42, g_buffer.count, g_is_default ? nullptr : stream->native);
}
int reference(void*, const double* const*, double* const* outputs) {
  for (uint64_t i = 0; i < g_buffer.count; ++i) outputs[0][i] = 42;
  return 0;
}
void teardown(void*) {}
}  // namespace
extern "C" const WeirKernel* weir_kernel() {
  static WeirKernel kernel;
  kernel.abi = WEIR_KERNEL_ABI;
  kernel.size = sizeof kernel;
  kernel.summary = "sets";
  kernel.backends = WEIR_CUDA;
  kernel.precisions = WEIR_FP32;
  kernel.parameter_count = 2;
  kernel.parameters = g_parameters;
  kernel.setup = setup;
  kernel.run = run;
  kernel.reference = reference;
  kernel.teardown = teardown;
  return &kernel;
}
)~";

TEST_F(PackageOnGpu, a_library_launches_on_the_stream_that_it_is_given) {
  const Package made = make_package("sets", Form::host_source, "kernel.cpp", kLibrary);
  const auto part = std::make_shared<const HostPart>(build_host_part(made, made.parts[0], build_options()), "sets");
  const auto package = package::open_gpu(part, Backend::cuda, {"kernel.so", "", {}, "library"}, build_options());
  for (const double is_default : {0.0, 1.0}) {
    const auto kernel = package->prepare({Backend::cuda, Precision::fp32, {{"default_stream", {is_default}}}, 1337});
    const Checked checked = kernel->check();
    EXPECT_TRUE(checked.faults.empty()) << checked.faults[0];
    EXPECT_EQ(error_of(checked), 0) << is_default;
    EXPECT_EQ(kernel->launches_per_run(), std::nullopt);
    EXPECT_EQ(kernel->how(), "library");
    const double time_ns = kernel->run(100).device_ns / 100;
    fmt::print("{} stream: {:.2f} us for 64 MiB\n", is_default != 0 ? "default" : "own", time_ns * 1e-3);
    // 64 MiB in 2 us would be 33 TB/s: then what was timed is not what ran.
    EXPECT_GT(time_ns, 2000);
  }
}

// Host and device code in one file, for all precisions, with nvcc.
constexpr const char* kAhead = R"~(
#include <weir/device.h>
#if WEIR_DEVICE_CODE
template <class Real>
__global__ void twice(const Real* x, Real* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weir_store(y, i, weir_load(x, i) * 2);
}
template <class Real>
int launch(WeirStream* stream, int n) {
  twice<<<(n + 255) / 256, 256, 0, (cudaStream_t)stream->native>>>((const Real*)stream->buffers[0],
                                                                   (Real*)stream->buffers[1], n);
  return cudaGetLastError();
}
#endif
#if WEIR_HOST_CODE
namespace {
constexpr int kCount = 5000;
WeirBuffer g_buffers[2] = {{"x", WEIR_INPUT, WEIR_REAL, kCount, WEIR_UNIFORM, -1, 1},
                           {"y", WEIR_OUTPUT, WEIR_REAL, kCount, 0, 0, 0}};
int setup(const WeirProblem*, WeirSetup* setup, void** state) {
  setup->buffer_count = 2;
  setup->buffers = g_buffers;
  *state = g_buffers;
  return 0;
}
int run(void*, WeirStream* stream) {
#if WEIR_DEVICE_CODE
  switch (stream->precision) {
    case WEIR_FP64: return launch<double>(stream, kCount);
    case WEIR_FP32: return launch<float>(stream, kCount);
    case WEIR_FP16: return launch<weir_fp16>(stream, kCount);
    case WEIR_FP8_E4M3: return launch<weir_fp8_e4m3>(stream, kCount);
    case WEIR_FP8_E5M2: return launch<weir_fp8_e5m2>(stream, kCount);
    default: return launch<weir_bf16>(stream, kCount);
  }
#else
  (void)stream;
  return 98;
#endif
}
int reference(void*, const double* const* inputs, double* const* outputs) {
  for (int i = 0; i < kCount; ++i) outputs[1][i] = 2 * inputs[0][i];
  return 0;
}
void teardown(void*) {}
}  // namespace
extern "C" WEIR_EXPORT const WeirKernel* weir_kernel() {
  static WeirKernel kernel;
  kernel.abi = WEIR_KERNEL_ABI;
  kernel.size = sizeof kernel;
  kernel.summary = "doubles";
  kernel.backends = WEIR_CUDA;
  kernel.precisions = WEIR_FP64 | WEIR_FP32 | WEIR_FP16 | WEIR_BF16 | WEIR_FP8_E4M3 | WEIR_FP8_E5M2;
  kernel.setup = setup;
  kernel.run = run;
  kernel.reference = reference;
  kernel.teardown = teardown;
  return &kernel;
}
#endif
)~";

TEST_F(PackageOnGpu, nvcc_builds_one_library_for_all_precisions) {
  if (std::system("nvcc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "nvcc is not on the PATH";
  Package made = make_package("ahead", Form::cuda_source, "kernel.cu", kAhead);
  made.config.compiler = Compiler::ahead;
  const auto package = open_package(made, Backend::cuda, build_options());
  for (const Precision precision : kPrecisions) {
    const auto kernel = package->prepare({Backend::cuda, precision, {}, 1337});
    const Checked checked = kernel->check();
    EXPECT_TRUE(checked.faults.empty()) << checked.faults[0];
    EXPECT_EQ(error_of(checked), 0) << name_of(precision);  // twice a number is a number
    EXPECT_EQ(kernel->how(), "nvcc");
  }
}

}  // namespace
}  // namespace weir::testing
