// Memory of a device from Kineto's allocations: peaks, steps, what is left out; and of real captures.
#include "trace/analyse/memory_held.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "trace/analyse/iterations.h"
#include "trace/analyse/slice.h"
#include "trace/import/import.h"
#include "trace/merge.h"

namespace weir {
namespace {

std::string allocation(int at_us, std::int64_t bytes, std::int64_t allocated, std::int64_t reserved, int device = 0) {
  return fmt::format(
      R"({{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 5, "tid": 1, "ts": {},
         "args": {{"Total Reserved": {}, "Total Allocated": {}, "Bytes": {}, "Addr": 1, "Device Id": {},
                   "Device Type": {}}}}},)",
      at_us, reserved, allocated, bytes, device, device < 0 ? 0 : 1);
}
std::string range(const char* category, const std::string& name, int from_us, int to_us) {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 5, "tid": 1, "ts": {}, "dur": {}}},)", category,
                     name, from_us, to_us - from_us);
}
std::string kernel(int device = 0) {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "k", "pid": {0}, "tid": 7, "ts": 1, "dur": 1,
                         "args": {{"device": {0}, "stream": 7, "correlation": 1}}}},)",
                     device);
}

Timeline timeline_of(std::string events, bool has_operations = true) {
  events.pop_back();
  ImportOptions options;
  options.has_operations = has_operations;
  return import_memory(R"({"traceEvents": [)" + events + "]}", "test.json", options).timeline;
}

MemoryHeld held_by(const Timeline& whole, std::uint16_t device = 0) {
  return memory_held(slice(whole, device), iteration_ranges(whole, whole.devices.at(device).process));
}

TEST(MemoryHeld, has_the_peak_with_what_allocated_then) {
  const Timeline timeline = timeline_of(
      kernel() + range("user_annotation", "ProfilerStep#3", 0, 100) +
      range("python_function", "nn.Module: Linear_0", 5, 50) + range("cpu_op", "aten::mm", 10, 20) +
      range("cpu_op", "aten::add", 30, 40) + allocation(15, 512, 1512, 4096) + allocation(35, 256, 1768, 4096) +
      allocation(60, -512, 1256, 4096) + allocation(70, 64, 99999, 0, -1) + allocation(80, 512, 1768, 4096));
  const MemoryHeld found = held_by(timeline);
  EXPECT_EQ(found.allocations, 3U) << "the host's memory does not count";
  EXPECT_EQ(found.frees, 1U);
  EXPECT_EQ(found.allocated_bytes, 1280U);
  EXPECT_EQ(found.allocated.bytes, 1768U);
  EXPECT_EQ(found.allocated.at_ns, 35'000) << "the first time";
  ASSERT_LT(found.allocated.operation, timeline.operations.size());
  const Operation& made = timeline.operations[found.allocated.operation];
  EXPECT_EQ(timeline.names.at(made.name), "aten::add");
  EXPECT_EQ(timeline.names.at(timeline.modules.at(made.module).name), "Linear_0");
  EXPECT_EQ(found.allocated.step, 0U);
  EXPECT_EQ(found.reserved.at_ns, 15'000);
  ASSERT_EQ(found.steps.size(), 1U);
  EXPECT_EQ(found.steps[0].peak_bytes, 1768U);
  EXPECT_EQ(found.steps[0].end_bytes, 1768U);
}

TEST(MemoryHeld, shows_what_grows_from_step_to_step) {
  const auto grown = [](const std::vector<int>& ends) {
    std::string events = kernel();
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const int at = static_cast<int>(100 * i);
      events += range("user_annotation", fmt::format("ProfilerStep#{}", i), at, at + 90) +
                allocation(at + 10, 1000, ends[i] + 1000, 9999) + allocation(at + 50, -1000, ends[i], 9999);
    }
    return held_by(timeline_of(events, false));
  };
  const MemoryHeld leak = grown({100, 300, 310, 320, 330});
  EXPECT_TRUE(leak.grows);
  EXPECT_EQ(leak.grown, 4U);
  EXPECT_EQ(leak.steps.at(4).end_bytes, 330U);
  EXPECT_EQ(leak.steps.at(4).peak_bytes, 1330U);
  EXPECT_TRUE(grown({300, 300, 310, 320}).grows) << "the second step does not count";
  EXPECT_FALSE(grown({100, 300, 300, 300}).grows) << "the optimizer's state comes with the first step";
  EXPECT_FALSE(grown({100, 200, 300}).grows) << "too few steps";
  EXPECT_FALSE(grown({100, 300, 310, 309, 330}).grows);
}

TEST(MemoryHeld, is_found_on_the_only_device_of_a_process) {
  // ROCm numbers devices with the CPUs among them in commands, but not in allocations.
  const Timeline one = timeline_of(kernel(2) + allocation(5, 8, 8, 8, 0));
  EXPECT_EQ(held_by(one).allocations, 1U);
  const Timeline two = timeline_of(kernel(2) + kernel(3) + allocation(5, 8, 8, 8, 0) + allocation(6, 8, 16, 8, 3));
  EXPECT_NE(held_by(two, 0).reason, "");
  EXPECT_EQ(held_by(two, 1).allocations, 1U);
  ASSERT_EQ(two.dropped.size(), 1U);
  EXPECT_EQ(two.dropped[0].reason, "allocation on a device that ran no command");
  std::vector<Timeline> parts;
  parts.push_back(timeline_of(kernel(0)));
  parts.push_back(timeline_of(kernel(1) + allocation(5, 8, 8, 8, 1)));
  const Timeline whole = merge(std::move(parts));
  EXPECT_NE(held_by(whole, 0).reason, "");
  EXPECT_EQ(held_by(whole, 1).allocations, 1U);
}

TEST(MemoryHeld, what_is_damaged_is_counted) {
  const auto odd = [](const char* arguments, const char* time) {
    return fmt::format(R"({{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 5, "tid": 1{},
                          "args": {{{}}}}},)",
                       time, arguments);
  };
  const char* const kWhole = R"("Total Allocated": 9, "Bytes": 1, "Device Id": 0)";
  const Timeline timeline = timeline_of(
      kernel() + odd(kWhole, "") + odd(kWhole, R"(, "ts": "x")") + odd(kWhole, R"(, "ts": 9e30)") +
      odd(R"("Bytes": 1, "Device Id": 0)", R"(, "ts": 1)") +
      odd(R"("Total Allocated": 9, "Bytes": 1)", R"(, "ts": 1)") +
      odd(R"("Total Allocated": [9], "Bytes": {"a": 1}, "Device Id": 0)", R"(, "ts": 1)") +
      odd(R"("Total Allocated": 18446744073709551615, "Bytes": 9223372036854775807, "Device Id": 0)", R"(, "ts": 1)") +
      odd(R"("Total Allocated": 3, "Bytes": 9223372036854775807, "Device Id": 0)", R"(, "ts": 2)") +
      odd(R"("Total Allocated": 3, "Bytes": 9223372036854775807, "Device Id": 0)", R"(, "ts": 3)"));
  std::uint64_t dropped = 0;
  for (const Dropped& each : timeline.dropped) dropped += each.count;
  EXPECT_EQ(dropped, 6U);
  const MemoryHeld found = held_by(timeline);
  EXPECT_EQ(found.allocations, 3U);
  EXPECT_EQ(found.allocated.bytes, UINT64_MAX);
  EXPECT_EQ(found.allocated_bytes, UINT64_MAX) << "no sum wraps";
}

TEST(MemoryHeld, real_captures_agree_with_a_calculation_of_others) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
  struct Known {
    const char* file;
    std::size_t allocations;
    std::uint64_t together, allocated, reserved;
    const char* by;
  };
  // json.load() in Python: events named [memory] with another Device Id than -1.
  for (const Known& known :
       {Known{"h100_qwen_shapes", 1125, 21'375'221'248, 2'088'508'416, 2'629'828'608, "aten::mul"},
        Known{"mi300_timesformer_shapes", 651, 96'846'472'704, 4'591'406'080, 6'671'040'512, "aten::mul"}}) {
    ImportOptions options;
    options.has_operations = true;
    const std::filesystem::path file =
        std::filesystem::path(folder) / "kineto" / (std::string(known.file) + ".json.gz");
    const Timeline timeline = std::move(import_traces({file}, options).front()).timeline;
    const MemoryHeld found = held_by(timeline);
    EXPECT_EQ(found.allocations, known.allocations) << known.file;
    EXPECT_EQ(found.frees, known.allocations) << known.file;
    EXPECT_EQ(found.allocated_bytes, known.together) << known.file;
    EXPECT_EQ(found.allocated.bytes, known.allocated) << known.file;
    EXPECT_EQ(found.reserved.bytes, known.reserved) << known.file;
    ASSERT_LT(found.allocated.operation, timeline.operations.size()) << known.file;
    EXPECT_EQ(timeline.names[timeline.operations[found.allocated.operation].name], known.by) << known.file;
    for (const Dropped& dropped : timeline.dropped)
      EXPECT_EQ(dropped.reason.find("allocation"), std::string::npos) << dropped.reason;
  }
}

}  // namespace
}  // namespace weir
