// hipRTC itself, which needs no GPU; a machine without it skips. A folder of its own, so a process of its own: Debian's
// brings clang's options to the same libLLVM as its OpenCL driver for CPUs does, and LLVM ends a process that has both.
#include "device/gpu_compiler_cases.h"

namespace weir::testing {
namespace {

TEST(Hiprtc, compiles_every_precision_to_machine_code) {
  std::string reason;
  const GpuCompiler* const compiler = open_hiprtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  compiles_each_precision(*compiler, "gfx90a");
}

TEST(Hiprtc, compiles_regions) {
  std::string reason;
  const GpuCompiler* const compiler = open_hiprtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  compiles_regions(*compiler, "gfx90a");
}

TEST(Hiprtc, compiles_the_device_code_once) {
  std::string reason;
  const GpuCompiler* const compiler = open_hiprtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  compiles_the_device_code(*compiler, "gfx90a");
}

TEST(Hiprtc, shows_what_is_wrong_with_a_source) {
  std::string reason;
  const GpuCompiler* const compiler = open_hiprtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  shows_what_is_wrong(*compiler, "gfx90a");
}

}  // namespace
}  // namespace weir::testing
