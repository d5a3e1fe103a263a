// Kernels of packages on a real OpenCL device: PoCL will do.
#include <gtest/gtest.h>

#include <cstdlib>

#include "device/opencl/platforms.h"
#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/opencl_source.h"
#include "lab/kernels/package/scale_package.h"

namespace weir::testing {
namespace {

using namespace package;
using ::testing::Test;

constexpr Precision kAll[] = {Precision::fp64, Precision::fp32,     Precision::fp16,
                              Precision::bf16, Precision::fp8_e4m3, Precision::fp8_e5m2};

class OpenclKernel : public Test {
 protected:
  void SetUp() override {
#if WEIR_HAVE_OPENCL
    // Tests run in the build folder; compiled kernels are kept there from run to run.
    setenv("POCL_CACHE_DIR", (std::filesystem::current_path() / "pocl_cache").c_str(), 0);
    std::filesystem::create_directories(std::getenv("POCL_CACHE_DIR"));
    if (opencl_devices().devices.empty()) GTEST_SKIP() << opencl_devices().reason;
    has_fp64_ = opencl_devices().devices[0]->facts().offers("cl_khr_fp64");
#else
    GTEST_SKIP() << "left out of this build";
#endif
  }
  static std::unique_ptr<OpenPackage> open(const std::string& text = kScaleOpencl) {
    return open_opencl(scale_host(), {.name = "kernel.cl", .text = text, .flags = {}, .built_by = ""}, build_options());
  }
  static std::string failure(Mode mode) {
    return message_of([&] {
      const auto kernel = open()->prepare(scale_case(Backend::opencl, Precision::fp32, mode));
      kernel->run(1);
      kernel->run(1);
    });
  }
  bool has_fp64_ = false;
};

TEST_F(OpenclKernel, each_precision_is_computed_in_that_precision) {
  const auto package = open();
  double before = 0;
  for (const Precision precision : kAll) {
    if (precision == Precision::fp64 && !has_fp64_) continue;
    SCOPED_TRACE(name_of(precision));
    const auto kernel = package->prepare(scale_case(Backend::opencl, precision));
    const Checked checked = kernel->check();
    EXPECT_TRUE(checked.faults.empty()) << checked.faults[0];
    const double error = error_of(checked);
    // Not worse than the precision's rounding, and not better either: the type is no label.
    EXPECT_LE(error, 2 * rounding_of(precision));
    if (precision != Precision::fp64) {  // that is how the reference computes
      EXPECT_GT(error, 0.1 * rounding_of(precision));
      EXPECT_GT(error, before);
    }
    before = error;
    EXPECT_EQ(kernel->memory().allocated_bytes, 2 * 1000 * static_cast<std::uint64_t>(facts_of(precision).bytes) + 16);
  }
}

TEST_F(OpenclKernel, runs_are_timed_and_counted) {
  const auto kernel = open()->prepare(scale_case(Backend::opencl, Precision::fp32));
  EXPECT_EQ(kernel->launches_per_run(), std::nullopt);
  const BatchTime one = kernel->run(1);
  EXPECT_EQ(kernel->launches_per_run(), 1u);
  EXPECT_GT(one.device_ns, 0);
  EXPECT_GT(one.host_ns, 0);
  EXPECT_GT(kernel->run(50).device_ns, 0);
  EXPECT_GT(kernel->resolution_ns(), 0);
  EXPECT_FALSE(kernel->clock().empty());
  EXPECT_EQ(kernel->how(), "opencl");
  EXPECT_EQ(kernel->device_name(), "opencl:0");
  EXPECT_FALSE(kernel->device_model().empty());
  EXPECT_EQ(kernel->work().flop, 2000);
  EXPECT_FALSE(kernel->memory().reason.empty());
}

TEST_F(OpenclKernel, a_cold_run_is_a_run) {
  const auto kernel = open()->prepare(scale_case(Backend::opencl, Precision::fp32));
  ASSERT_EQ(kernel->cold_reason(), "");
  EXPECT_GT(kernel->run_cold().device_ns, 0);
  EXPECT_LE(error_of(kernel->check()), 2 * rounding_of(Precision::fp32));
}

TEST_F(OpenclKernel, two_functions_by_one_pointer_are_two) {
  const auto kernel = open()->prepare(scale_case(Backend::opencl, Precision::fp32, Mode::renamed));
  kernel->run(1);
  EXPECT_LE(error_of(kernel->check()), 2 * rounding_of(Precision::fp32));
  EXPECT_EQ(kernel->launches_per_run(), 2u);
}

TEST_F(OpenclKernel, what_run_does_wrong_is_said) {
  const std::pair<Mode, const char*> kCases[] = {
      {Mode::unknown_function, "scale on opencl:0: function 'no_such_function' is not in the device source"},
      {Mode::hides_error, "function 'no_such_function' is not in the device source"},
      {Mode::launches_nothing, "scale ran nothing on opencl:0"},
      {Mode::launches_once, "scale ran nothing on opencl:0"},
      {Mode::undeclared_buffer, "names a buffer which setup() did not declare"},
      {Mode::too_many_arguments, "has more than 64 arguments"},
      {Mode::huge_block, "CL_INVALID_WORK_GROUP_SIZE"},
      {Mode::throws, "thrown by run"},
      {Mode::returns_3, "the kernel's own words"},
      {Mode::wrong_size, "argument 2"},
      {Mode::too_few_arguments, "was given 5 arguments first, and 3 now"},
  };
  for (const auto& [mode, words] : kCases) {
    const std::string text = failure(mode);
    EXPECT_NE(text.find(words), std::string::npos) << words << ": " << text;
  }
}

TEST_F(OpenclKernel, a_failed_run_spoils_no_other_case) {
  const auto package = open();
  const auto wrong = package->prepare(scale_case(Backend::opencl, Precision::fp32, Mode::unknown_function));
  EXPECT_THROW(wrong->run(1), Error);
  EXPECT_THROW(wrong->run(1), Error);
  const auto right = package->prepare(scale_case(Backend::opencl, Precision::fp32));
  EXPECT_LE(error_of(right->check()), 2 * rounding_of(Precision::fp32));
}

TEST_F(OpenclKernel, a_result_that_is_no_number_is_seen) {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    const auto kernel = open()->prepare(scale_case(Backend::opencl, precision, Mode::not_a_number));
    EXPECT_TRUE(std::isnan(error_of(kernel->check()))) << name_of(precision);
  }
}

TEST_F(OpenclKernel, what_was_not_written_and_what_must_not_be_are_faults) {
  const auto hole = open()->prepare(scale_case(Backend::opencl, Precision::fp32, Mode::leaves_a_hole));
  hole->run(3);
  EXPECT_TRUE(std::isnan(hole->check().outputs[0].actual[999]));
  const auto spoils = open()->prepare(scale_case(Backend::opencl, Precision::fp32, Mode::writes_input));
  const Checked checked = spoils->check();
  ASSERT_FALSE(checked.faults.empty());
  EXPECT_NE(checked.faults[0].find("input 'x'"), std::string::npos) << checked.faults[0];
}

TEST_F(OpenclKernel, a_source_that_does_not_compile_shows_the_drivers_log) {
  const std::string text = message_of([] {
    open("\n\n__kernel void scale() { undeclared = 1; }\n")->prepare(scale_case(Backend::opencl, Precision::fp16));
  });
  EXPECT_NE(text.find("cannot compile kernel.cl"), std::string::npos) << text;
  EXPECT_NE(text.find("undeclared"), std::string::npos) << text;
  // The line as in the file; NVIDIA's compiler counts from the first line of the headers and heeds no #line.
  EXPECT_TRUE(text.find("kernel.cl:3") != std::string::npos || text.find("(NVIDIA CUDA)") != std::string::npos) << text;
  EXPECT_NE(text.find("WEIR_PRECISION=4"), std::string::npos) << text;
}

TEST_F(OpenclKernel, a_device_that_is_not_there_is_refused) {
  OpenOptions options = build_options();
  options.device = 99;
  const std::string text = message_of([&] {
    open_opencl(scale_host(), {.name = "kernel.cl", .text = kScaleOpencl, .flags = {}, .built_by = ""}, options);
  });
  EXPECT_NE(text.find("there is no opencl:99"), std::string::npos) << text;
}

TEST(OpenclSource, headers_come_first_and_lines_keep_their_numbers) {
  const EmbeddedHeader headers[] = {
      {"device.h", "#include \"weir/kernel.h\"\nint device;\n"}, {"host.h", "int host;"}, {"kernel.h", "int kernel;"}};
  EXPECT_EQ(opencl_text(headers, "a\"b.cl", "  # include <weir/device.h> // x\n#include \"other.h\"\nint own;"),
            "#line 1 \"weir/kernel.h\"\nint kernel;\n"
            "#line 1 \"weir/device.h\"\n\nint device;\n"
            "#line 1 \"ab.cl\"\n\n#include \"other.h\"\nint own;\n");
}

}  // namespace
}  // namespace weir::testing
