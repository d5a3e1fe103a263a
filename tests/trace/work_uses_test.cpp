// Shares of kinds of work in the device's time, which must add up to it exactly.
#include "trace/analyse/work_uses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "trace/device_spans.h"
#include "trace/import/import.h"
#include "trace/intervals.h"

namespace weir {
namespace {

void add(Timeline& timeline, const std::string& name, std::int64_t from_ns, std::int64_t to_ns,
         SpanKind kind = SpanKind::kernel) {
  Span span;
  const auto known = std::find(timeline.names.begin(), timeline.names.end(), name);
  span.name = static_cast<std::uint32_t>(known - timeline.names.begin());
  if (known == timeline.names.end()) timeline.names.push_back(name);
  span.kind = kind;
  span.started_ns = from_ns;
  span.ended_ns = to_ns;
  timeline.spans.push_back(span);
}

std::uint64_t busy_ns(const Timeline& timeline) {
  std::vector<TimeInterval> all;
  for (const Span& span : timeline.spans)
    if (is_device_work(span)) all.push_back({span.started_ns, span.ended_ns});
  return total_ns(unite_all(all));
}

std::uint64_t sum_of(const std::vector<WorkUse>& uses) {
  std::uint64_t sum = 0;
  for (const WorkUse& use : uses) sum += use.busy_ns;
  return sum;
}

// What all commands ran in all, of the classes and of the device.
std::uint64_t durations_of(const std::vector<WorkUse>& uses) {
  std::uint64_t sum = 0;
  for (const WorkUse& use : uses) sum += use.total_ns;
  return sum;
}
std::uint64_t durations_in(const Timeline& timeline) {
  std::uint64_t sum = 0;
  for (const Span& span : timeline.spans)
    if (is_device_work(span)) sum += distance_ns(span.started_ns, span.ended_ns);
  return sum;
}

TEST(WorkUses, those_at_once_share_the_time) {
  Timeline timeline;
  add(timeline, "gemm", 0, 100);
  add(timeline, "softmax", 50, 151);  // 51 alone, 50 beside the product
  add(timeline, "gemm", 200, 200);
  add(timeline, "callback", 300, 900, SpanKind::host);
  const std::vector<WorkUse> uses = work_uses(timeline, timeline.names);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].work, WorkClass::softmax);
  EXPECT_EQ(uses[0].busy_ns, 76U);
  EXPECT_EQ(uses[1].work, WorkClass::matrix);
  EXPECT_EQ(uses[1].commands, 2U);
  EXPECT_EQ(uses[1].total_ns, 100U);
  EXPECT_EQ(uses[1].busy_ns, 75U);
  EXPECT_DOUBLE_EQ(uses[0].share + uses[1].share, 1);
}

TEST(WorkUses, nothing_and_all_of_time) {
  EXPECT_TRUE(work_uses({}, {}).empty());
  Timeline timeline;
  add(timeline, "gemm", INT64_MIN + 1, INT64_MAX);
  add(timeline, "softmax", INT64_MIN + 1, INT64_MAX);
  add(timeline, "topk", INT64_MIN + 1, INT64_MAX);
  EXPECT_EQ(sum_of(work_uses(timeline, timeline.names)), busy_ns(timeline));
}

TEST(WorkUses, add_up_to_the_busy_time_of_any_timeline) {
  std::mt19937_64 random(20261119);
  const char* const names[] = {"gemm", "softmax", "topk", "reduce", "transpose", "who knows"};
  for (int round = 0; round < 200; ++round) {
    Timeline timeline;
    const auto commands = random() % 60;
    for (std::uint64_t i = 0; i < commands; ++i) {
      const auto from = static_cast<std::int64_t>(random() % 500);
      add(timeline, names[random() % std::size(names)], from, from + static_cast<std::int64_t>(random() % 40),
          random() % 8 == 0 ? SpanKind::copy : SpanKind::kernel);
    }
    const std::vector<WorkUse> uses = work_uses(timeline, timeline.names);
    ASSERT_EQ(sum_of(uses), busy_ns(timeline)) << "round " << round;
    ASSERT_EQ(durations_of(uses), durations_in(timeline)) << "round " << round;
    std::size_t counted = 0;
    for (const WorkUse& use : uses) {
      counted += use.commands;
      EXPECT_LE(use.busy_ns, use.total_ns + commands) << "its part is never more than it ran, but for rounding";
    }
    EXPECT_EQ(counted, commands);
  }
}

TEST(WorkUses, real_captures_are_recognised_and_add_up) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
  for (const char* const name :
       {"kineto/a100_ddp_4streams.json.gz", "kineto/h100_qwen_shapes.json.gz", "kineto/h200_gpt_training.json.gz",
        "kineto/mi300_sglang_decode_graphs.json.gz", "rocprof/mi350x_fsdp_567streams_5queues.json.gz"}) {
    const Timeline timeline = std::move(import_traces({std::filesystem::path(folder) / name}, {}).front()).timeline;
    const std::vector<WorkUse> uses = work_uses(timeline, timeline.names);
    EXPECT_EQ(sum_of(uses), busy_ns(timeline)) << name;
    EXPECT_EQ(durations_of(uses), durations_in(timeline)) << name;
    for (const WorkUse& use : uses)
      if (use.work == WorkClass::unrecognised) {
        EXPECT_LT(use.share, 0.05) << name;
      }
  }
}

}  // namespace
}  // namespace weir
