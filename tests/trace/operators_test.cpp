// Which operators launched what: from Kineto's events, and against a search through all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "trace/analyse/model_use.h"
#include "trace/device_spans.h"
#include "trace/import/import.h"
#include "trace/merge.h"

namespace weir {
namespace {

std::string operation(const std::string& name, int thread, int from_us, int for_us) {
  return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 5, "tid": {}, "ts": {}, "dur": {}}},)", name,
                     thread, from_us, for_us);
}
std::string launch(int correlation, int thread, int at_us, int for_us = 1) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": {}, "ts": {}, "dur": {},
         "args": {{"correlation": {}}}}},)",
      thread, at_us, for_us, correlation);
}
std::string kernel(int correlation, int at_us, int for_us) {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {}, "dur": {},
                        "args": {{"device": 0, "stream": 7, "correlation": {}}}}},)",
                     at_us, for_us, correlation);
}

Timeline imported(std::string events, bool has_operations = true) {
  events.pop_back();
  ImportOptions options;
  options.has_operations = has_operations;
  return import_memory(R"({"traceEvents": [)" + events + "]}", "test.json", options).timeline;
}

// Name -> {commands, ns, ns of launching}
std::map<std::string, std::array<std::uint64_t, 3>> table_of(const Timeline& timeline) {
  std::map<std::string, std::array<std::uint64_t, 3>> table;
  for (const ShapedUse& use : model_use(timeline, {}).shaped)
    table[timeline.names.at(use.name)] = {use.work.commands, use.work.total_ns, use.launching_ns};
  return table;
}
using Row = std::array<std::uint64_t, 3>;

const std::string& example() {
  static const std::string kEvents = operation("aten::linear", 1, 10, 90) + operation("aten::addmm", 1, 20, 30) +
                                     operation("aten::relu", 2, 10, 500) + launch(1, 1, 25, 2) +
                                     launch(2, 1, 60) +   // in addmm, in linear behind it
                                     launch(3, 1, 105) +  // in none
                                     launch(4, 2, 30) +   // in another thread
                                     kernel(1, 200, 10) + kernel(1, 210, 5) + kernel(2, 220, 20) + kernel(3, 250, 4) +
                                     kernel(4, 260, 8) + kernel(99, 300, 7);
  return kEvents;
}

TEST(Operators, are_the_innermost_around_the_launch) {
  const Timeline timeline = imported(example());
  const auto table = table_of(timeline);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table.at("aten::addmm"), (Row{2, 15'000, 2'000})) << "one call of a graph may submit several";
  EXPECT_EQ(table.at("aten::linear"), (Row{1, 20'000, 1'000}));
  EXPECT_EQ(table.at("aten::relu"), (Row{1, 8'000, 1'000}));
  const ModelUse found = model_use(timeline, {});
  EXPECT_EQ(found.shaped[0].work.total_ns, 20'000U) << "most time first";
  EXPECT_EQ(found.outside.commands, 1U);
  EXPECT_EQ(found.outside.total_ns, 4'000U);
  EXPECT_EQ(found.without_call.commands, 1U);
  EXPECT_EQ(found.without_call.total_ns, 7'000U);
}

TEST(Operators, are_read_only_where_somebody_asks) {
  const ModelUse none = model_use(imported(example(), false), {});
  EXPECT_TRUE(none.shaped.empty());
  EXPECT_NE(none.reason.find("--operators"), std::string::npos);
  const ModelUse without = model_use(imported(launch(1, 1, 5) + kernel(1, 10, 10)), {});
  EXPECT_TRUE(without.shaped.empty());
  EXPECT_EQ(without.outside.commands, 0U);
  EXPECT_FALSE(without.reason.empty());
}

TEST(Operators, keep_their_names_among_several_files) {
  std::vector<Timeline> parts;
  parts.push_back(imported(operation("aten::mul", 1, 0, 10) + launch(1, 1, 5) + kernel(1, 20, 10)));
  parts.push_back(imported(example()));
  const Timeline whole = merge(std::move(parts));
  const auto table = table_of(whole);
  EXPECT_EQ(table.at("aten::mul"), (Row{1, 10'000, 1'000}));
  EXPECT_EQ(table.at("aten::addmm"), (Row{2, 15'000, 2'000}));
}

TEST(Operators, agree_with_a_search) {
  std::mt19937_64 random(20261119);
  const auto below = [&](std::uint64_t limit) { return static_cast<int>(random() % limit); };
  struct Made {
    std::string name;
    int thread, from, to;
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<Made> made;
    std::string events;
    // Operators of a thread nest.
    const auto nest = [&](auto&& self, int thread, int from, int to, int depth) -> void {
      for (int at = from; at < to && depth < 4;) {
        const int begin = at + below(8), end = std::min(to, begin + 1 + below(60));
        if (begin >= end) break;
        made.push_back({fmt::format("op{}", made.size()), thread, begin, end});
        events += operation(made.back().name, thread, begin, end - begin);
        self(self, thread, begin, end, depth + 1);
        at = end;
      }
    };
    for (int thread = 1; thread <= 3; ++thread) nest(nest, thread, 0, 200, 0);
    std::map<std::string, std::uint64_t> expected;
    std::uint64_t outside = 0;
    for (int i = 1; i <= 60; ++i) {
      const int thread = 1 + below(4), at = below(220);
      events += launch(i, thread, at) + kernel(i, 1000 + 10 * i, 1);
      const Made* inner = nullptr;
      for (const Made& one : made)
        // At the end of one and the beginning of the next, the next one; of those that begin at once, the inner one.
        if (one.thread == thread && one.from <= at && at <= one.to &&
            (inner == nullptr || one.from > inner->from || (one.from == inner->from && one.to <= inner->to)))
          inner = &one;
      if (inner == nullptr)
        ++outside;
      else
        ++expected[inner->name];
    }
    const Timeline timeline = imported(events);
    const ModelUse found = model_use(timeline, {});
    std::uint64_t commands = 0;
    for (const ShapedUse& use : found.shaped) commands += use.work.commands;
    ASSERT_EQ(commands + (found.shaped.empty() ? outside : found.outside.commands), 60U) << "round " << round;
    for (const auto& [name, row] : table_of(timeline)) ASSERT_EQ(row[0], expected[name]) << name << ", round " << round;
  }
}

TEST(Operators, real_captures_add_up) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
  ImportOptions options;
  options.has_operations = true;
  for (const char* const name : {"a100_ddp_4streams", "h100_qwen_shapes", "h200_gpt_training"}) {
    const std::filesystem::path file = std::filesystem::path(folder) / "kineto" / (std::string(name) + ".json.gz");
    const Timeline timeline = std::move(import_traces({file}, options).front()).timeline;
    std::uint64_t all = 0, found_ns = 0;
    for (const Span& span : timeline.spans)
      if (is_device_work(span)) all += static_cast<std::uint64_t>(span.ended_ns - span.started_ns);
    const ModelUse found = model_use(timeline, {});
    for (const ShapedUse& use : found.shaped) found_ns += use.work.total_ns;
    EXPECT_EQ(found_ns + found.outside.total_ns + found.without_call.total_ns, all) << name;
    EXPECT_GT(found_ns, all / 2) << name;
  }
}

}  // namespace
}  // namespace weir
