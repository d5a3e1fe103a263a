// Regions on the cpu device: compiled by the system's C++ compiler, cached, and run without one.
#include <filesystem>

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
    EXPECT_FALSE(done.compile_ns.has_value());
    EXPECT_NE(done.reason.find(variable("CXX").value()), std::string::npos) << done.reason;
    EXPECT_FALSE(std::filesystem::exists(cache.regions())) << "nothing was compiled";
    expect_right_results(*device);
  }
}

TEST(CpuRegions, leave_no_files_behind) {
  const OwnCache cache;
  const PrivateFolder temporary;
  ::setenv("TMPDIR", temporary.path().c_str(), 1);
  compilation_of(*open(), compiled_step());
  compilation_of(*open_with(broken_compiler), compiled_step());
  ::unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(temporary.path()));
}

TEST(CpuRegions, a_step_without_regions_compiles_nothing) {
  const Step step = compiled_step(Precision::fp32, "eager");
  const Placement placement = conformance::natural(step);
  EXPECT_FALSE(open()->prepare(step, placement, {})->compilation().has_value());
}

}  // namespace
}  // namespace weir
