// Runs of the program with loaders that fail in one way or another (tests/fake_opencl). No OpenCL driver is needed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/program.h"
#include "cli/queues_checks.h"
#include "weir_build.h"

#if WEIR_HAVE_OPENCL

namespace weir::testing {
namespace {

Outcome with_loader(const std::string& kind, const std::vector<std::string>& arguments,
                    const std::string& variable = "UNUSED=1") {
  std::vector<std::string> command = {"env", "LD_LIBRARY_PATH=" WEIR_FAKE_OPENCL "/" + kind, variable, WEIR_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program(command);
}

TEST(OpenclLoader, a_platform_that_fails_is_left_out_and_the_other_one_is_used) {
  const Outcome outcome = with_loader("failing", {"info"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "opencl:0")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "Fake GPU (Fake)")) << outcome.out;
  EXPECT_FALSE(has(outcome.out, "opencl:1")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "OpenCL platform 'Broken' is left out: listing its devices failed")) << outcome.out;
}

TEST(OpenclLoader, a_missing_symbol_is_named) {
  const Outcome outcome =
      with_loader("lacking", {"run", "tiny_kernel_stress", "--device", "opencl", "--scale", "tiny"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "libOpenCL.so.1 lacks clFinish")) << outcome.err;
}

TEST(OpenclLoader, a_device_that_is_lost_during_a_run_ends_it_with_the_command_that_failed) {
  const Outcome outcome = with_loader(
      "failing", {"run", "tiny_kernel_stress", "--device", "opencl", "--scale", "tiny", "--iterations", "50"},
      "FAKE_OPENCL_LAUNCHES=5000");
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_TRUE(has(outcome.err, "CL_OUT_OF_RESOURCES (-5)")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "submitting kernel '")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "may be lost")) << outcome.err;
}

TEST(OpenclLoader, kernels_that_use_host_memory_are_rejected_where_a_trial_shows_that_they_cannot) {
  const Outcome outcome = with_loader("failing", {"queues", "map", "--device", "opencl"});
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.err, "host memory")) << outcome.err;
}

}  // namespace
}  // namespace weir::testing

#endif
