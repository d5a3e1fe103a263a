// What a compiler of GPU code in this process has to do, whoever made it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/private_folder.h"
#include "device/gpu/compiler.h"
#include "device/gpu/device_source.h"
#include "kernel/region_source.h"

namespace weir::testing {
inline std::string read_header(const std::string& name) {
  std::ifstream file(WEIR_SOURCE_DIR "/include/weir/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline GpuSource source_of(std::string text, int precision) {
  return {.name = "kernel.cu",
          .text = std::move(text),
          .headers = {{"weir/kernel.h", read_header("kernel.h")}, {"weir/device.h", read_header("device.h")}},
          .options = {"-DWEIR_PRECISION=" + std::to_string(precision)}};
}

// Every operation of regions, in every type that the catalogue stores.
inline void compiles_regions(const GpuCompiler& compiler, const std::string& target) {
  using enum RegionOp;
  for (const std::vector<RegionOp>& ops :
       {std::vector<RegionOp>{mul, add, relu}, {gelu, square}, {clamp, abs}, {add_matrix, add_row}, {add_row}}) {
    const KernelShape shape{.dims = {4, 4, region_ops(ops)}};
    for (const int precision : {2, 4, 8}) {
      const GpuSource source = source_of(region_source(shape, RegionLanguage::cuda), precision);
      const std::string code = compiler.compile(source, target);
      EXPECT_EQ(code.substr(1, 3), "ELF") << precision;
      EXPECT_NE(code.find(kRegionEntry), std::string::npos);
    }
  }
}

inline constexpr const char* kCopy = R"(#include <weir/device.h>
static_assert(sizeof(weir_real) == SIZE, "");
extern "C" __global__ void copy(const weir_real* from, weir_real* to, long long count) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < count) weir_store(to, i, weir_widen(weir_narrow(weir_load(from, i))));
}
)";

inline void compiles_each_precision(const GpuCompiler& compiler, const std::string& target) {
  constexpr std::pair<int, int> kSizes[] = {{1, 8}, {2, 4}, {4, 2}, {8, 2}};
  for (const auto& [precision, size] : kSizes) {
    GpuSource source = source_of(kCopy, precision);
    source.options.push_back("-DSIZE=" + std::to_string(size));
    const std::string code = compiler.compile(source, target);
    EXPECT_EQ(code.substr(1, 3), "ELF") << precision;
    EXPECT_NE(code.find("copy"), std::string::npos);
  }
}

// Weir's own kernels: all of them, and from the cache the second time.
inline void compiles_the_device_code(const GpuCompiler& compiler, const std::string& target) {
  const PrivateFolder folder;
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const std::string code = compile_device_code(compiler, target, "a GPU");
  for (const char* name : {"weir_gelu_f32", "weir_gelu_f16", "weir_softmax_bf16", "weir_attention_f32"})
    EXPECT_NE(code.find(name), std::string::npos) << name;
  GpuCompiler none = compiler;
  none.compile = [](const GpuSource&, const std::string&) -> std::string { return "compiled again"; };
  EXPECT_EQ(compile_device_code(none, target, "a GPU"), code);
  EXPECT_EQ(compile_device_code(none, target, "another GPU"), "compiled again");
  std::filesystem::permissions(folder.path() / "weir/device_code", std::filesystem::perms::all);
  EXPECT_EQ(compile_device_code(none, target, "a GPU"), "compiled again");  // others could have written there
  ::unsetenv("XDG_CACHE_HOME");
}

inline void shows_what_is_wrong(const GpuCompiler& compiler, const std::string& target) {
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

}  // namespace weir::testing
