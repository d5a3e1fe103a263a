// Compilers of GPU code in this process. NVRTC and hipRTC need no GPU; a machine without them skips.
#include "device/gpu_compiler.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"

namespace weir::testing {
namespace {

std::string read_header(const std::string& name) {
  std::ifstream file(WEIR_SOURCE_DIR "/include/weir/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

GpuSource source_of(std::string text, int precision) {
  return {.name = "kernel.cu",
          .text = std::move(text),
          .headers = {{"weir/kernel.h", read_header("kernel.h")}, {"weir/device.h", read_header("device.h")}},
          .options = {"-DWEIR_PRECISION=" + std::to_string(precision)}};
}

constexpr const char* kCopy = R"(#include <weir/device.h>
static_assert(sizeof(weir_real) == SIZE, "");
extern "C" __global__ void copy(const weir_real* from, weir_real* to, long long count) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < count) weir_store(to, i, weir_widen(weir_narrow(weir_load(from, i))));
}
)";

void compiles_each_precision(const GpuCompiler& compiler, const std::string& target) {
  constexpr std::pair<int, int> kSizes[] = {{1, 8}, {2, 4}, {4, 2}, {8, 2}};
  for (const auto& [precision, size] : kSizes) {
    GpuSource source = source_of(kCopy, precision);
    source.options.push_back("-DSIZE=" + std::to_string(size));
    const std::string code = compiler.compile(source, target);
    EXPECT_EQ(code.substr(1, 3), "ELF") << precision;
    EXPECT_NE(code.find("copy"), std::string::npos);
  }
}

void shows_what_is_wrong(const GpuCompiler& compiler, const std::string& target) {
  try {
    compiler.compile(source_of("\n#include \"weir/device.h\"\nint a = undeclared;\n", 2), target);
    FAIL() << "compiled";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_NE(what.find("kernel.cu"), std::string::npos) << what;
    EXPECT_NE(what.find("undeclared"), std::string::npos) << what;
    EXPECT_NE(what.find("3"), std::string::npos) << what;
    EXPECT_NE(error.hint.find("-DWEIR_PRECISION=2"), std::string::npos) << error.hint;
  }
}

TEST(Nvrtc, compiles_every_precision_to_machine_code) {
  std::string reason;
  const GpuCompiler* const compiler = open_nvrtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  compiles_each_precision(*compiler, "sm_90");
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

TEST(Hiprtc, compiles_every_precision_to_machine_code) {
  std::string reason;
  const GpuCompiler* const compiler = open_hiprtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  compiles_each_precision(*compiler, "gfx90a");
}

TEST(Hiprtc, shows_what_is_wrong_with_a_source) {
  std::string reason;
  const GpuCompiler* const compiler = open_hiprtc(&reason);
  if (compiler == nullptr) GTEST_SKIP() << reason;
  shows_what_is_wrong(*compiler, "gfx90a");
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
  EXPECT_EQ(first_complaints("one\n\n  \n\x1b[31mtwo\r\n"), "\n  one\n  [31mtwo");
  EXPECT_EQ(first_complaints("1\n2\n3\n", 2), "\n  1\n  2\n  ...");
  EXPECT_EQ(first_complaints(std::string_view("a\n\0", 3)), "\n  a");
}

}  // namespace
}  // namespace weir::testing
