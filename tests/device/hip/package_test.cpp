// Kernels of packages on HIP from the source down: the fake hipRTC compiles it for the host, the fake runtime launches
// it.
#include <gtest/gtest.h>

#include "device/hip/hip_testing.h"
#include "lab/kernels/package/backends.h"
#include "lab/kernels/package/scale_package.h"

namespace weir::testing {
namespace {

using namespace package;

class HipPackage : public HipTest {
 protected:
  static std::unique_ptr<OpenPackage> open(const std::string& text = kScaleCuda) {
    return open_gpu(scale_host(), Backend::hip, {"kernel.hip", text, {}, ""}, build_options());
  }
  static std::string failure(Mode mode) {
    return message_of([&] {
      const auto kernel = open()->prepare(scale_case(Backend::hip, Precision::fp32, mode));
      kernel->run(1);
      kernel->run(1);
    });
  }
};

TEST_F(HipPackage, each_precision_is_computed_in_that_precision) {
  const auto package = open();
  double before = 0;
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(name_of(precision));
    const auto kernel = package->prepare(scale_case(Backend::hip, precision));
    const Checked checked = kernel->check();
    EXPECT_TRUE(checked.faults.empty()) << checked.faults[0];
    const double error = error_of(checked);
    EXPECT_LE(error, 2 * rounding_of(precision));
    if (precision != Precision::fp64) {  // that is how the reference computes
      EXPECT_GT(error, 0.1 * rounding_of(precision));
      EXPECT_GT(error, before);
    }
    before = error;
    EXPECT_EQ(kernel->how(), "hiprtc");
    EXPECT_EQ(kernel->device_name(), "hip:0");
    EXPECT_EQ(kernel->clock(), "HIP events");
    EXPECT_EQ(kernel->launches_per_run(), 1u);
    const std::uint64_t bytes = 2 * 1000 * static_cast<std::uint64_t>(facts_of(precision).bytes) + 16;
    EXPECT_EQ(kernel->memory().allocated_bytes, bytes);
  }
}

TEST_F(HipPackage, not_a_number_stays_that_in_every_precision) {
  for (const Precision precision : kPrecisions) {
    const auto kernel = open()->prepare(scale_case(Backend::hip, precision, Mode::not_a_number));
    EXPECT_TRUE(std::isnan(error_of(kernel->check()))) << name_of(precision);
  }
}

TEST_F(HipPackage, runs_are_timed_and_the_board_is_read) {
  const auto kernel = open()->prepare(scale_case(Backend::hip, Precision::fp32));
  const BatchTime time = kernel->run(20);
  EXPECT_GT(time.device_ns, 0);
  EXPECT_GT(time.host_ns, 0);
  EXPECT_GT(kernel->run_cold().device_ns, 0);
  EXPECT_TRUE(kernel->telemetry().power_w);
}

TEST_F(HipPackage, what_run_does_wrong_is_said) {
  const std::pair<Mode, const char*> kCases[] = {
      {Mode::unknown_function, "scale on hip:0: function 'no_such_function' is not in the device source (HIP error"},
      {Mode::hides_error, "function 'no_such_function' is not in the device source"},
      {Mode::launches_nothing, "scale ran nothing on hip:0"},
      {Mode::huge_block, "HIP error"},
      {Mode::throws, "thrown by run"},
  };
  for (const auto& [mode, words] : kCases) {
    const std::string text = failure(mode);
    EXPECT_NE(text.find(words), std::string::npos) << words << ": " << text;
  }
}

TEST_F(HipPackage, a_lost_gpu_is_said_to_be) {
  configure("lost_after=3");
  const auto kernel = open()->prepare(scale_case(Backend::hip, Precision::fp32));
  kernel->run(1);
  const std::string text = message_of([&] { kernel->run(10); });
  EXPECT_NE(text.find("scale on hip:0"), std::string::npos) << text;
  EXPECT_NE(text.find("The GPU is lost to this process"), std::string::npos) << text;
}

TEST_F(HipPackage, a_source_that_does_not_compile_shows_the_log) {
  const std::string text = message_of([] {
    open("\n\nextern \"C\" __global__ void scale() { undeclared = 1; }\n")
        ->prepare(scale_case(Backend::hip, Precision::fp16));
  });
  EXPECT_NE(text.find("hipRTC 6.4 cannot compile kernel.hip"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel.hip:3"), std::string::npos) << text;
  EXPECT_NE(text.find("undeclared"), std::string::npos) << text;
  EXPECT_NE(text.find("-DWEIR_PRECISION=4"), std::string::npos) << text;
}

}  // namespace
}  // namespace weir::testing
