// Compilers of GPU code in this process. NVRTC needs no GPU; a machine without it skips. hipRTC: tests/device/hiprtc.
#include "device/compiler_log.h"
#include "device/gpu_compiler_cases.h"

namespace weir::testing {
namespace {

TEST(Nvrtc, compiles_every_precision_to_machine_code) {
  std::string reason;
  const GpuCompiler* const compiler = open_nvrtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  compiles_each_precision(*compiler, "sm_90");
}

TEST(Nvrtc, compiles_regions) {
  std::string reason;
  const GpuCompiler* const compiler = open_nvrtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  compiles_regions(*compiler, "sm_90");
}

TEST(Nvrtc, gives_ptx_where_it_does_not_know_the_device) {
  std::string reason;
  const GpuCompiler* const compiler = open_nvrtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  GpuSource source = source_of(kCopy, 2);
  source.options.push_back("-DSIZE=4");
  EXPECT_NE(compiler->compile(source, "sm_999").find(".entry copy"), std::string::npos);
  source.options.push_back("--gpu-architecture=compute_90");  // the user's word wins
  EXPECT_NE(compiler->compile(source, "sm_90").find(".target sm_90"), std::string::npos);
}

TEST(Nvrtc, shows_what_is_wrong_with_a_source) {
  std::string reason;
  const GpuCompiler* const compiler = open_nvrtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  shows_what_is_wrong(*compiler, "sm_90");
}

TEST(GpuCompiler, the_target_is_the_device_or_the_best_below_it) {
  const std::vector<int> known = {75, 80, 90};
  EXPECT_EQ(compile_target("sm_90", known), "sm_90");
  EXPECT_EQ(compile_target("sm_100", known), "compute_90");
  EXPECT_EQ(compile_target("sm_86", known), "compute_80");
  EXPECT_EQ(compile_target("sm_70", known), "");
  EXPECT_EQ(compile_target("sm_90", {}), "sm_90");
  EXPECT_EQ(compile_target("gfx942", known), "gfx942");
}

TEST(GpuCompiler, a_log_is_cut_and_has_no_control_characters) {
  EXPECT_EQ(first_log_lines("one\n\n  \n\x1b[31mtwo\r\n"), "\n  one\n  [31mtwo");
  EXPECT_EQ(first_log_lines("1\n2\n3\n", 2), "\n  1\n  2\n  ...");
  EXPECT_EQ(first_log_lines(std::string_view("a\n\0", 3)), "\n  a");
}

}  // namespace
}  // namespace weir::testing
