// Kernels of packages on a GPU made of nothing: arguments, launches, errors, memory. The functions of the device source
// are run on the host; what compiles and runs for real is in gpu_compiler_test.cpp and package_gpu_test.cpp.
#include "lab/kernels/package/gpu_kernel.h"

#include <gtest/gtest.h>

#include <cstring>

#include "device/fake_gpu_state.h"
#include "device/gpu/compiler.h"
#include "lab/kernels/package/launch_site.h"
#include "lab/kernels/package/scale_package.h"

namespace weir::testing {
namespace {

using namespace package;
using ::testing::Test;

// What the table below was asked for.
struct Seen {
  std::vector<GpuSource> sources;
  std::string architecture;
  int loads = 0, functions = 0;
  std::vector<std::array<unsigned, 7>> launches;  // grid, block, shared
  std::vector<int> attributes;
  int error = 0;  // of the next launches
};
Seen g_seen;

// The device source as the host would write it. fp32 only.
int scale(GpuStream stream, void** parameters, bool writes_nan, bool spoils) {
  // Copied here: arguments are the caller's again when a launch returns.
  float *x = nullptr, *y = nullptr, factor = 0;
  int count = 0;
  double offset = 0;
  std::memcpy(&x, parameters[0], sizeof x);
  std::memcpy(&y, parameters[1], sizeof y);
  std::memcpy(&count, parameters[2], sizeof count);
  std::memcpy(&factor, parameters[3], sizeof factor);
  std::memcpy(&offset, parameters[4], sizeof offset);
  const fake_gpu::Lock lock(fake_gpu::state().mutex);
  return fake_gpu::enqueue_work(stream, [=] {
    for (int i = 0; i < count; ++i) {
      y[i] = writes_nan ? std::nanf("") : x[i] * factor + static_cast<float>(offset);
      if (spoils) x[i] = 0;
    }
    return 0;
  });
}

const char* const kFunctions[] = {"scale", "scale_nan", "spoil"};
const std::size_t kParameterBytes[] = {8, 8, 4, 4, 8};

GpuApi make_table() {
  GpuApi api = fake_gpu::api();
  api.backend = "cuda";
  api.vendor_name = "CUDA";
  api.facts = [](int, GpuFacts* facts) {
    *facts = {.model = "fake", .bus_id = "", .architecture = "sm_90", .cache_bytes = 1 << 20};
    return 0;
  };
  api.compiler = [](std::string*) -> const GpuCompiler* {
    static const GpuCompiler compiler = {"nvrtc", "fake 1", [](const GpuSource& source, const std::string& target) {
                                           g_seen.sources.push_back(source);
                                           g_seen.architecture = target;
                                           return std::string("code");
                                         }};
    return &compiler;
  };
  api.function_get = [](GpuFunction* function, GpuModule, const char* name) {
    ++g_seen.functions;
    for (const char* const& each : kFunctions)
      if (std::strcmp(each, name) == 0) return *function = reinterpret_cast<GpuFunction>(const_cast<char**>(&each)), 0;
    return 500;
  };
  api.function_parameter = [](GpuFunction, std::size_t index, std::size_t*, std::size_t* size) {
    return index < std::size(kParameterBytes) ? (*size = kParameterBytes[index], 0) : 1;
  };
  api.function_attribute = [](GpuFunction, int attribute, int value) {
    if (attribute == kGpuMaxSharedBytes) g_seen.attributes.push_back(value);
    return 0;
  };
  api.launch = [](GpuFunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, GpuStream stream, void** parameters, void**) {
    if (bx > 1024) return 1;
    if (g_seen.error != 0) return g_seen.error;
    g_seen.launches.push_back({gx, gy, gz, bx, by, bz, shared});
    const std::string name = *reinterpret_cast<const char* const*>(function);
    return scale(stream, parameters, name == "scale_nan", name == "spoil");
  };
  return api;
}

class GpuKernel : public Test {
 protected:
  void SetUp() override {
    fake_gpu::reset({});
    g_seen = {};
    api_ = make_table();
  }
  std::unique_ptr<OpenPackage> open(DeviceSource source = {"/packages/scale/kernel.cu", "source", {"-DX=1"}, ""}) {
    return open_gpu_with(api_, scale_host(), Backend::cuda, std::move(source), build_options());
  }
  std::string failure(Mode mode) {
    return message_of([&] {
      const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32, mode));
      kernel->run(1);
      kernel->run(1);
    });
  }
  GpuApi api_;
};

TEST_F(GpuKernel, arguments_arrive_and_the_result_is_right) {
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32));
  const Checked checked = kernel->check();
  EXPECT_TRUE(checked.faults.empty()) << checked.faults[0];
  EXPECT_LE(error_of(checked), 2 * rounding_of(Precision::fp32));
  ASSERT_FALSE(g_seen.launches.empty());
  EXPECT_EQ(g_seen.launches[0], (std::array<unsigned, 7>{16, 1, 1, 64, 1, 1, 0}));
  EXPECT_EQ(kernel->launches_per_run(), 1u);
  EXPECT_EQ(kernel->how(), "nvrtc");
  EXPECT_EQ(kernel->device_name(), "cuda:0");
  EXPECT_EQ(kernel->clock(), "CUDA events");
}

TEST_F(GpuKernel, a_batch_is_as_many_runs_and_looks_a_function_up_once) {
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32));
  kernel->run(1);
  const std::size_t before = g_seen.launches.size();
  const BatchTime time = kernel->run(100);
  EXPECT_EQ(g_seen.launches.size() - before, 100u);
  EXPECT_EQ(g_seen.functions, 1);
  EXPECT_GT(time.device_ns, 0);
  EXPECT_GT(time.host_ns, 0);
}

TEST_F(GpuKernel, each_precision_is_compiled_once_for_itself) {
  const auto package = open();
  for (int round = 0; round < 2; ++round)
    for (const Precision precision : kPrecisions) package->prepare(scale_case(Backend::cuda, precision));
  const char* const kOptions[] = {"-DWEIR_PRECISION=1", "-DWEIR_PRECISION=2",  "-DWEIR_PRECISION=4",
                                  "-DWEIR_PRECISION=8", "-DWEIR_PRECISION=32", "-DWEIR_PRECISION=64"};
  ASSERT_EQ(g_seen.sources.size(), std::size(kOptions));
  for (std::size_t i = 0; i < std::size(kOptions); ++i) {
    const std::vector<std::string>& options = g_seen.sources[i].options;
    EXPECT_NE(std::find(options.begin(), options.end(), kOptions[i]), options.end());
    EXPECT_NE(std::find(options.begin(), options.end(), "-DX=1"), options.end());
    EXPECT_NE(std::find(options.begin(), options.end(), "-I/packages/scale"), options.end());
  }
  EXPECT_EQ(g_seen.architecture, "sm_90");
  EXPECT_EQ(g_seen.sources[0].name, "kernel.cu");
  std::vector<std::string> names;
  for (const auto& [name, text] : g_seen.sources[0].headers) names.push_back(name);
  EXPECT_NE(std::find(names.begin(), names.end(), "weir/kernel.h"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "weir/device.h"), names.end());
}

TEST_F(GpuKernel, what_run_does_wrong_is_said) {
  const std::pair<Mode, const char*> kCases[] = {
      {Mode::unknown_function,
       "scale on cuda:0: function 'no_such_function' is not in the device source (fake error 500)"},
      {Mode::hides_error, "function 'no_such_function' is not in the device source"},
      {Mode::launches_nothing, "scale ran nothing on cuda:0"},
      {Mode::launches_once, "scale ran nothing on cuda:0"},
      {Mode::undeclared_buffer, "names a buffer which setup() did not declare"},
      {Mode::too_many_arguments, "has more than 64 arguments"},
      {Mode::huge_block, "block 1048576x1x1 and 0 bytes of shared memory: fake error 1"},
      {Mode::throws, "thrown by run"},
      {Mode::returns_3, "the kernel's own words"},
      {Mode::wrong_size, "takes 4 bytes as argument 2, and 8 were given"},
      {Mode::too_few_arguments, "takes 5 arguments, and 3 were given"},
  };
  for (const auto& [mode, words] : kCases) {
    const std::string text = failure(mode);
    EXPECT_NE(text.find(words), std::string::npos) << words << ": " << text;
  }
}

TEST_F(GpuKernel, an_error_while_it_runs_has_the_drivers_words) {
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32));
  kernel->run(1);
  g_seen.error = 700;
  const std::string text = message_of([&] { kernel->run(1); });
  EXPECT_NE(text.find("fake error 700"), std::string::npos) << text;
}

TEST_F(GpuKernel, two_functions_by_one_pointer_are_two) {
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::renamed));
  kernel->run(1);
  EXPECT_LE(error_of(kernel->check()), 2 * rounding_of(Precision::fp32));
  EXPECT_EQ(kernel->launches_per_run(), 2u);
  EXPECT_EQ(g_seen.functions, 2);
}

TEST_F(GpuKernel, poison_shows_what_was_not_written_and_what_must_not_be) {
  const auto hole = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::leaves_a_hole));
  hole->run(3);
  EXPECT_TRUE(std::isnan(hole->check().outputs[0].actual[999]));
  const auto wrong = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::not_a_number));
  EXPECT_TRUE(std::isnan(error_of(wrong->check())));
  const auto spoils = open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::writes_input));
  const Checked checked = spoils->check();
  ASSERT_FALSE(checked.faults.empty());
  EXPECT_NE(checked.faults[0].find("input 'x'"), std::string::npos) << checked.faults[0];
}

TEST_F(GpuKernel, a_library_launches_by_itself) {
  // It has a null launch(), so the scale package must not call it: this mode does not.
  const auto kernel = open({"kernel.so", "", {}, "library"})
                          ->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::launches_nothing));
  kernel->run(1);
  EXPECT_EQ(kernel->launches_per_run(), std::nullopt);
  EXPECT_EQ(kernel->how(), "library");
  EXPECT_TRUE(g_seen.sources.empty());
  EXPECT_FALSE(kernel->check().faults.empty());  // and poison shows that it did nothing
}

TEST_F(GpuKernel, memory_is_what_the_buffers_take) {
  for (const Precision precision : kPrecisions) {
    const auto kernel = open()->prepare(scale_case(Backend::cuda, precision));
    const std::uint64_t bytes = 2 * 1000 * static_cast<std::uint64_t>(facts_of(precision).bytes) + 16;
    EXPECT_EQ(kernel->memory().allocated_bytes, bytes);
    EXPECT_EQ(kernel->memory().peak_bytes, bytes);
  }
}

TEST_F(GpuKernel, memory_that_others_give_back_hides_the_peak) {
  const auto package = open();
  GpuPointer others = 0;
  ASSERT_EQ(api_.memory_allocate(&others, 1 << 20), 0);
  static GpuPointer s_others;
  s_others = others;
  static decltype(GpuApi::stream_create) s_create;
  s_create = api_.stream_create;
  api_.stream_create = [](GpuStream* stream, unsigned flags, int priority) {
    fake_gpu::api().memory_free(s_others);
    return s_create(stream, flags, priority);
  };
  const KernelMemory memory = package->prepare(scale_case(Backend::cuda, Precision::fp32))->memory();
  EXPECT_EQ(memory.peak_bytes, std::nullopt);
  EXPECT_NE(memory.reason.find("gave memory of cuda:0 back"), std::string::npos) << memory.reason;
}

TEST_F(GpuKernel, a_problem_that_does_not_fit_is_refused_with_sizes) {
  fake_gpu::reset({.memory_bytes = 1 << 20});
  const std::string text =
      message_of([&] { open()->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::right, 1 << 20)); });
  EXPECT_NE(text.find("buffer 'x' needs 4194304 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("1048576 are free"), std::string::npos) << text;
  EXPECT_NE(text.find("problem_size"), std::string::npos) << text;
}

TEST_F(GpuKernel, a_cold_run_overwrites_twice_the_cache_first) {
  static std::vector<std::pair<std::size_t, std::size_t>> s_sets;  // bytes, launches before
  s_sets.clear();
  api_.set_32 = [](GpuPointer to, unsigned value, std::size_t count, GpuStream stream) {
    s_sets.emplace_back(4 * count, g_seen.launches.size());
    return fake_gpu::api().set_32(to, value, count, stream);
  };
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32));
  ASSERT_EQ(kernel->cold_reason(), "");
  const std::uint64_t peak = *kernel->memory().peak_bytes;
  EXPECT_GT(kernel->run_cold().device_ns, 0);
  kernel->run_cold();
  // The first run of all comes before: it must not warm what was made cold.
  EXPECT_EQ(s_sets, (decltype(s_sets){{2 << 20, 1}, {2 << 20, 2}}));
  EXPECT_EQ(g_seen.launches.size(), 3u);
  EXPECT_EQ(kernel->memory().peak_bytes, peak);  // the harness's own memory is none of the kernel's
}

TEST_F(GpuKernel, without_room_there_are_no_cold_runs_and_a_reason) {
  fake_gpu::reset({.memory_bytes = 1 << 20});
  const auto kernel = open()->prepare(scale_case(Backend::cuda, Precision::fp32));
  EXPECT_NE(kernel->cold_reason().find("no 2 MiB left"), std::string::npos) << kernel->cold_reason();
  EXPECT_THROW(kernel->run_cold(), Error);
  kernel->run(1);
}

TEST_F(GpuKernel, without_a_compiler_there_is_a_reason) {
  api_.compiler = [](std::string* reason) -> const GpuCompiler* {
    *reason = "NVRTC was not found: libnvrtc.so.13";
    return nullptr;
  };
  const std::string text = message_of([&] { open(); });
  EXPECT_NE(text.find("nothing compiles /packages/scale/kernel.cu: NVRTC was not found"), std::string::npos) << text;
}

TEST_F(GpuKernel, a_device_that_is_not_there_is_refused) {
  OpenOptions options = build_options();
  options.device = 1;
  const std::string text =
      message_of([&] { open_gpu_with(api_, scale_host(), Backend::cuda, {"kernel.cu", "x", {}, ""}, options); });
  EXPECT_NE(text.find("there is no cuda:1: this machine has 1 such device"), std::string::npos) << text;
}

TEST_F(GpuKernel, everything_is_given_back) {
  {
    const auto package = open();
    const auto kernel = package->prepare(scale_case(Backend::cuda, Precision::fp32));
    kernel->run(10);
    kernel->run_cold();
    EXPECT_THROW(package->prepare(scale_case(Backend::cuda, Precision::fp32, Mode::unknown_function))->run(1), Error);
  }
  EXPECT_EQ(fake_gpu::leaks(), "");
}

TEST(LaunchSite, arguments_are_packed_as_device_code_lays_them_out) {
  void* const kBuffers[] = {nullptr, reinterpret_cast<void*>(std::uintptr_t{0x1122334455667788})};
  const auto bytes = [&](const WeirArgument& argument) {
    const PackedArgument packed = pack(argument, kBuffers);
    return std::string(reinterpret_cast<const char*>(&packed.word), packed.bytes);
  };
  const auto of = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  EXPECT_EQ(bytes(weir_buffer(1)), of(std::uint64_t{0x1122334455667788}));
  EXPECT_EQ(bytes(weir_i32(-7)), of(std::int32_t{-7}));
  EXPECT_EQ(bytes(weir_i64(-7'000'000'000)), of(std::int64_t{-7'000'000'000}));
  EXPECT_EQ(bytes(weir_f32(0.1f)), of(0.1f));
  EXPECT_EQ(bytes(weir_f64(0.1)), of(0.1));
}

TEST(LaunchSite, a_kind_that_there_is_not_is_refused) {
  WeirArgument argument = weir_i32(1);
  argument.kind = 9;
  WeirLaunch launch{};
  launch.function = "f";
  launch.argument_count = 1;
  EXPECT_NE(launch_fault(launch, 1), nullptr);  // no arguments behind the count
  launch.arguments = &argument;
  EXPECT_NE(launch_fault(launch, 1), nullptr);
  argument.kind = WEIR_ARGUMENT_I32;
  EXPECT_EQ(launch_fault(launch, 1), nullptr);
  launch.function = nullptr;
  EXPECT_NE(launch_fault(launch, 1), nullptr);
}

}  // namespace
}  // namespace weir::testing
