// What every device that compiles regions has to do: the same results as one kernel per operation, a cache that is used
// the second time, and one that is not trusted where it is damaged.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/private_folder.h"
#include "device/device.h"
#include "kernel/region.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/steps.h"
#include "step/workload/workload.h"

namespace weir::region_cases {

using OpenDevice = std::function<std::unique_ptr<Device>()>;

inline constexpr std::size_t kRegions = 6;  // of the workload

inline Step compiled_step(Precision precision = Precision::fp32, const char* mode = "compiled") {
  const Workload& workload = workload_named("torch_compile");
  const std::pair<std::string, std::string> chosen[] = {{"mode", mode}, {"break_us", "0"}};
  Params params(workload.params, Scale::tiny, chosen);
  params.precision = precision;
  return workload.build(params, 4);
}

inline Compilation compilation_of(Device& device, const Step& step) {
  const Placement placement = conformance::natural(step);
  const auto session = device.prepare(step, placement, {});
  const auto done = session->compilation();
  EXPECT_TRUE(done.has_value());
  return done.value_or(Compilation{});
}

// A variable of the environment, for the length of a test.
class OwnVariable {
 public:
  OwnVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~OwnVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  OwnVariable(const OwnVariable&) = delete;
  OwnVariable& operator=(const OwnVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Where a user's cache lies, for the length of a test.
class OwnCache {
 public:
  std::filesystem::path regions() const { return folder_.path() / "weir" / "regions"; }

 private:
  PrivateFolder folder_;
  OwnVariable variable_{"XDG_CACHE_HOME", folder_.path().string()};
};

inline void expect_right_results(Device& device) {
  conformance::Subject subject{device, device.info(), nullptr, {}};
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16})
    for (const char* mode : {"compiled", "eager"}) {
      const conformance::CaseOutcome outcome = conformance::same_as_reference(subject, compiled_step(precision, mode));
      EXPECT_TRUE(outcome.is_passed()) << name_of(precision) << ' ' << mode << ": " << outcome.text;
    }
}

inline void expect_a_cache(const OpenDevice& open, bool is_kept_on_disk = true) {
  const OwnCache cache;
  const Step step = compiled_step();
  std::unique_ptr<Device> device = open();
  const Compilation first = compilation_of(*device, step);
  EXPECT_EQ(first.regions, kRegions);
  EXPECT_EQ(first.compiled, kRegions) << first.reason;
  EXPECT_GT(first.compile_ns.value_or(0), 0);
  EXPECT_NE(first.compiler, "");
  const Compilation again = compilation_of(*device, step);
  EXPECT_EQ(again.from_memory, kRegions);
  EXPECT_EQ(again.compiled + again.from_disk, 0u);
  if (!is_kept_on_disk) return;

  device = nullptr;
  device = open();
  const Compilation later = compilation_of(*device, step);
  EXPECT_EQ(later.from_disk, kRegions);
  EXPECT_EQ(later.compiled, 0u);
  expect_right_results(*device);

  // Files that are cut off, empty, or have a byte changed: compiled again, and good the next time.
  std::size_t damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache.regions())) {
    const std::filesystem::path& file = entry.path();
    if (damaged % 3 == 0) std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
    if (damaged % 3 == 1) std::filesystem::resize_file(file, 0);
    if (damaged % 3 == 2) {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(-1, std::ios::end);
      const char last = static_cast<char>(stream.get());
      stream.seekp(-1, std::ios::end);
      stream.put(static_cast<char>(last ^ 1));
    }
    ++damaged;
  }
  ASSERT_GE(damaged, kRegions);
  device = nullptr;
  device = open();
  const Compilation repaired = compilation_of(*device, step);
  EXPECT_EQ(repaired.compiled, kRegions);
  device = nullptr;
  device = open();
  EXPECT_EQ(compilation_of(*device, step).from_disk, kRegions);

  // Others could have put code there.
  std::filesystem::permissions(cache.regions(), std::filesystem::perms::all);
  device = nullptr;
  device = open();
  EXPECT_EQ(compilation_of(*device, step).compiled, kRegions);
}

}  // namespace weir::region_cases
