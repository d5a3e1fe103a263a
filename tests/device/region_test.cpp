// Regions on the cpu device: compiled by the system's C++ compiler, cached, and run without one.
#include <filesystem>
#include <fstream>

#include "device/cpu/test_parts.h"
#include "device/region_cases.h"

namespace weir {
namespace {

using namespace region_cases;

std::unique_ptr<Device> open_with(std::optional<std::string> (*variable)(const char*)) {
  DeviceOptions options;
  options.variable = variable;
  return cpu::open_cpu(options);
}
std::unique_ptr<Device> open() { return open_with(nullptr); }
std::optional<std::string> no_compiler(const char* name) {
  return std::string(name) == "CXX" ? std::optional<std::string>("no-such-compiler") : std::nullopt;
}
// Prints a version, and fails at the rest.
std::optional<std::string> broken_compiler(const char* name) {
  return std::string(name) == "CXX" ? std::optional<std::string>("false") : std::nullopt;
}

TEST(CpuRegions, are_compiled_once) {
  const OwnCache cache;
  if (compilation_of(*open(), compiled_step()).uncompiled > 0) GTEST_SKIP() << "this machine has no C++ compiler";
  expect_a_cache(open);
}

TEST(CpuRegions, run_operation_by_operation_without_a_compiler) {
  const OwnCache cache;
  for (const auto variable : {no_compiler, broken_compiler}) {
    const auto device = open_with(variable);
    const Compilation done = compilation_of(*device, compiled_step());
    EXPECT_EQ(done.uncompiled, kRegions);
    EXPECT_EQ(done.compiled + done.from_disk + done.from_memory, 0u);
    EXPECT_TRUE(done.compile_ns.has_value()) << "looking for a compiler takes time as well";
    EXPECT_EQ(done.hint, "Install a C++ compiler, or name one in CXX.");
    EXPECT_NE(done.reason.find(variable("CXX").value()), std::string::npos) << done.reason;
    EXPECT_FALSE(std::filesystem::exists(cache.regions())) << "nothing was compiled";
    expect_right_results(*device);
  }
}

// Says which it is when it is asked, counts how often it is asked to compile, and fails.
TEST(CpuRegions, a_compiler_that_fails_is_asked_once) {
  const OwnCache cache;
  const PrivateFolder folder;
  static std::string compiler;
  compiler = (folder.path() / "compiler").string();
  std::ofstream(compiler)
      << "#!/bin/sh\n[ \"$1\" = --version ] && echo one 1.0 && exit\necho . >> \"$0.calls\"\nexit 1\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const auto device = open_with([](const char*) { return std::optional<std::string>(compiler); });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(compilation_of(*device, compiled_step()).uncompiled, kRegions);
  EXPECT_EQ(std::filesystem::file_size(compiler + ".calls"), 2u) << "one line";
}

TEST(CpuRegions, an_empty_CXX_is_none) {
  const OwnCache cache;
  const Compilation usual = compilation_of(*open(), compiled_step());
  const auto device = open_with([](const char*) { return std::optional<std::string>(""); });
  EXPECT_EQ(compilation_of(*device, compiled_step()).compiler, usual.compiler);
}

TEST(CpuRegions, leave_no_files_behind) {
  const OwnCache cache;
  const PrivateFolder temporary;
  {
    const OwnVariable variable("TMPDIR", temporary.path());
    compilation_of(*open(), compiled_step());
    compilation_of(*open_with(broken_compiler), compiled_step());
  }
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST(CpuRegions, a_step_without_regions_compiles_nothing) {
  const Step step = compiled_step(Precision::fp32, "eager");
  const Placement placement = conformance::natural(step);
  EXPECT_FALSE(open()->prepare(step, placement, {})->compilation().has_value());
}

}  // namespace
}  // namespace weir
