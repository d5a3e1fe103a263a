// Commands, busy time and backlog of each queue from spans, against figures counted by hand.
#include "lab/watch/timeline_tally.h"

#include <gtest/gtest.h>

namespace weir::watch {
namespace {

// Two kernels, a copy and a host function; the second kernel is urgent.
Step four_commands() {
  StepBuilder builder(1);
  const KernelShape shape{.dims = {64}, .scalars = {}};
  const BufferId a = builder.uniform(ElementType::f32, 64), b = builder.uniform(ElementType::f32, 64);
  const BufferId c = builder.output(ElementType::f32, 64);
  const BufferId h = builder.host(ElementType::f32, 64, Init::uniform);
  builder.launch("gelu", {.stream = 0}, shape, {{a}, {a}});
  builder.launch("gelu", {.stream = 1, .priority = 1}, shape, {{b}, {b}});
  builder.copy({.stream = 2}, {a}, {c});
  builder.launch_on_host("gelu", {.stream = 3}, shape, {{h}, {h}});
  return std::move(builder).seal(4);
}

Span span_of(std::uint32_t command, std::int32_t queue, std::int64_t submitted, std::int64_t started,
             std::int64_t ended) {
  Span span;
  span.command = command;
  span.stream = static_cast<std::uint16_t>(command);
  span.queue = queue;
  span.submitted_ns = submitted;
  span.started_ns = started;
  span.ended_ns = ended;
  return span;
}

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(TimelineTally, counts_rates_busy_time_and_backlog_of_a_queue) {
  const Step step = four_commands();
  TimelineTally tally;
  // Two kernels and a copy on queue 3 within 1000 ns: waits of 100, 300 and 500 ns; they run 100-500 and 400-700.
  const Span spans[] = {span_of(0, 3, 0, 100, 500), span_of(1, 3, 100, 400, 700), span_of(2, 3, 200, 700, 700)};
  tally.add(spans, step, 0, 1000);
  const std::vector<Row> rows = tally.rows("cpu");
  ASSERT_EQ(rows.size(), 1u);
  const Row& row = rows[0];
  EXPECT_EQ(row.key, "cpu/queue/3");
  EXPECT_DOUBLE_EQ(*row.kernels_per_s.value, 2e6);
  EXPECT_DOUBLE_EQ(*row.commands_per_s.value, 3e6);
  EXPECT_DOUBLE_EQ(*row.busy.value, 0.6);  // 100 to 700, the overlap once
  EXPECT_DOUBLE_EQ(*row.backlog.value, 0.9);
  EXPECT_EQ(*row.most_backlog.value, 2);  // between 200 and 400
  EXPECT_EQ(*row.streams.value, 3);
  EXPECT_EQ(*row.priority.value, 1);
  EXPECT_EQ(row.priority_text, "0 to 1");
  EXPECT_EQ(row.is_active, true);
  EXPECT_FALSE(row.packets_per_s.value);
}

TEST(TimelineTally, pieces_of_a_window_add_up_and_counters_outlive_it) {
  const Step step = four_commands();
  TimelineTally tally;
  const Span first[] = {span_of(0, 0, 0, 0, 500)}, second[] = {span_of(0, 0, 10'000, 10'000, 10'250)};
  tally.add(first, step, 0, 1000);
  tally.add(second, step, 10'000, 11'000);
  EXPECT_EQ(tally.window_ns(), 2000);
  EXPECT_DOUBLE_EQ(*tally.rows("cpu")[0].busy.value, 750.0 / 2000);
  EXPECT_DOUBLE_EQ(*tally.rows("cpu")[0].kernels_per_s.value, 2e9 / 2000);
  tally.clear();
  EXPECT_TRUE(tally.is_empty());
  EXPECT_TRUE(tally.rows("cpu").empty());
  const Span other[] = {span_of(1, 1, 0, 0, 500)};
  tally.add(other, step, 0, kSecond);
  const std::vector<Row> rows = tally.rows("cpu");
  ASSERT_EQ(rows.size(), 2u);  // queue 0 was used before
  EXPECT_EQ(rows[0].is_active, false);
  EXPECT_EQ(*rows[0].kernels_per_s.value, 0);
  EXPECT_FALSE(rows[0].streams.value);
  EXPECT_EQ(*rows[0].kernels.value, 2);
  EXPECT_EQ(*rows[1].kernels.value, 1);
}

TEST(TimelineTally, commands_without_times_leave_shares_unknown) {
  const Step step = four_commands();
  TimelineTally tally;
  const Span spans[] = {span_of(0, 0, 0, 100, 500), span_of(1, 0, 0, kNoTime, kNoTime)};
  tally.add(spans, step, 0, 1000);
  const std::vector<Row> rows = tally.rows("cpu");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(tally.untimed(), 1u);
  EXPECT_FALSE(rows[0].busy.value);
  EXPECT_EQ(rows[0].busy.reason, "1 of 2 commands have no times");
  EXPECT_FALSE(rows[0].backlog.value);
  EXPECT_EQ(rows[0].is_active, true);  // the other one ran
  EXPECT_DOUBLE_EQ(*rows[0].kernels_per_s.value, 2e6);
}

TEST(TimelineTally, what_has_no_queue_is_told_apart_by_stream_and_host_functions_are_one_row) {
  const Step step = four_commands();
  TimelineTally tally;
  const Span spans[] = {span_of(0, kNoQueue, 0, 1, 2), span_of(1, kNoQueue, 0, 1, 2),
                        span_of(2, kCopyQueues + 1, 0, 1, 2), span_of(3, kNoQueue, 0, 1, 2)};
  tally.add(spans, step, 0, 1000);
  std::vector<std::string> labels;
  for (const Row& row : tally.rows("x")) labels.push_back(row.label);
  EXPECT_EQ(labels,
            (std::vector<std::string>{"copy queue 1", "stream 0 (queue?)", "stream 1 (queue?)", "host functions"}));
}

TEST(TimelineTally, a_clock_that_is_off_makes_nothing_negative) {
  const Step step = four_commands();
  TimelineTally tally;
  const Span spans[] = {span_of(0, 0, 500, 400, 300), span_of(1, 0, -100, -50, 2000)};
  tally.add(spans, step, 0, 1000);
  const Row row = tally.rows("cpu")[0];
  EXPECT_DOUBLE_EQ(*row.busy.value, 1);
  EXPECT_DOUBLE_EQ(*row.backlog.value, 0);
  tally.add(spans, step, 1000, 1000);  // no time has passed
  EXPECT_EQ(tally.window_ns(), 1000);
}

}  // namespace
}  // namespace weir::watch
