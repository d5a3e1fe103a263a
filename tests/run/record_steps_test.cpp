// Steps that nobody has named, found in the calls of a recorded program, and which of them are slow.
#include "run/record_steps.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr std::int64_t kMs = 1'000'000;

class Calls {
 public:
  void launch(std::uint32_t name, std::int64_t at_ms, std::uint32_t thread = 0) {
    add(record::Kind::launch, name, at_ms, at_ms, thread);
  }
  void range(std::uint32_t name, std::int64_t from_ms, std::int64_t to_ms) {
    add(record::Kind::range, name, from_ms, to_ms, 0);
  }
  void graph(std::uint64_t object, std::int64_t at_ms) {
    add(record::Kind::graph_launch, record::kNoText, at_ms, at_ms, 0);
    entries_.back().object = object;
  }
  // What the finder says of all that was added since the last call.
  std::optional<SlowStep> give(StepFinder& finder) {
    const auto slow = finder.add(entries_);
    entries_.clear();
    return slow;
  }

 private:
  void add(record::Kind kind, std::uint32_t name, std::int64_t from_ms, std::int64_t to_ms, std::uint32_t thread) {
    RecordedEntry entry;
    entry.kind = static_cast<std::uint8_t>(kind);
    entry.name = name;
    entry.started_ns = from_ms * kMs;
    entry.ended_ns = to_ms * kMs;
    entry.thread = thread;
    entry.flags = 0;
    entries_.push_back(entry);
  }
  std::vector<RecordedEntry> entries_;
};

// Steps of 100 ms: one kernel once (4), one three times (8), one ten times (12).
void add_step(Calls& calls, std::int64_t at_ms) {
  calls.launch(4, at_ms);
  for (int i = 0; i < 10; ++i) {
    calls.launch(12, at_ms + 1 + i);
    if (i < 3) calls.launch(8, at_ms + 20 + 20 * i);
  }
}

TEST(RecordSteps, are_those_of_the_rarest_kernel_that_comes_regularly) {
  StepFinder finder(3);
  Calls calls;
  for (int step = 0; step < 12; ++step) add_step(calls, 1000 + 100 * step);
  EXPECT_FALSE(calls.give(finder));
  add_step(calls, 2200);
  EXPECT_FALSE(calls.give(finder));
  add_step(calls, 2499);  // 299 ms: less than 3 medians
  EXPECT_FALSE(calls.give(finder));
  add_step(calls, 2800);  // 301 ms
  const auto slow = calls.give(finder);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->name, 4u);
  EXPECT_EQ(slow->took_ns, 301 * kMs);
  EXPECT_EQ(slow->median_ns, 100 * kMs);
  add_step(calls, 2900);
  EXPECT_FALSE(calls.give(finder));
}

TEST(RecordSteps, eight_must_be_known_before_one_is_judged) {
  StepFinder finder(2);
  Calls calls;
  for (int step = 0; step < 8; ++step) add_step(calls, 1000 + 100 * step);  // 7 intervals
  EXPECT_FALSE(calls.give(finder));
  add_step(calls, 5000);  // slow, but the eighth
  EXPECT_FALSE(calls.give(finder));
  add_step(calls, 9000);
  EXPECT_TRUE(calls.give(finder));
}

TEST(RecordSteps, kernels_of_the_warm_up_are_forgotten) {
  StepFinder finder(3);
  Calls calls;
  for (int i = 0; i < 4; ++i) calls.launch(16, 100 + 50 * i);
  for (int step = 0; step < 100; ++step) add_step(calls, 1000 + 100 * step);
  EXPECT_FALSE(calls.give(finder));
  add_step(calls, 12000);
  const auto slow = calls.give(finder);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->name, 4u);
}

TEST(RecordSteps, a_kernel_with_a_rhythm_within_the_step_is_no_step) {
  StepFinder finder(3);
  Calls calls;
  // Twice in a row in each step: every second interval is long.
  for (int step = 0; step < 40; ++step) {
    calls.launch(4, 1000 + 100 * step);
    calls.launch(4, 1001 + 100 * step);
    EXPECT_FALSE(calls.give(finder));
  }
}

TEST(RecordSteps, ranges_come_before_kernels_and_the_longest_counts) {
  StepFinder finder(3);
  Calls calls;
  for (int step = 0; step < 12; ++step) {
    add_step(calls, 1000 + 100 * step);
    calls.range(20, 1000 + 100 * step, 1030 + 100 * step);  // forward
    calls.range(24, 1000 + 100 * step, 1090 + 100 * step);  // step
  }
  EXPECT_FALSE(calls.give(finder));
  calls.range(20, 2200, 2600);
  EXPECT_FALSE(calls.give(finder)) << "a part of a step is no step";
  calls.range(24, 2200, 2700);
  const auto slow = calls.give(finder);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->name, 24u);
  EXPECT_EQ(slow->took_ns, 500 * kMs);
}

TEST(RecordSteps, graphs_have_no_name_and_threads_are_kept_apart) {
  StepFinder finder(3);
  Calls calls;
  for (int step = 0; step < 12; ++step) calls.graph(0x7f00'1234'5670, 1000 + 100 * step);
  EXPECT_FALSE(calls.give(finder));
  calls.launch(4, 2150, 1);  // another thread's first launch ends no step of this one
  EXPECT_FALSE(calls.give(finder));
  calls.graph(0x7f00'1234'5670, 2600);
  EXPECT_TRUE(calls.give(finder));
}

TEST(RecordSteps, any_numbers_are_survived) {
  StepFinder finder(3);
  std::uint64_t random = 1;
  std::vector<RecordedEntry> entries;
  for (int i = 0; i < 20'000; ++i) {
    RecordedEntry entry;
    const auto next = [&] { return random = random * 6364136223846793005U + 1442695040888963407U; };
    entry.kind = static_cast<std::uint8_t>(next() >> 59);
    entry.flags = static_cast<std::uint8_t>(next() >> 63);
    entry.name = static_cast<std::uint32_t>(next() >> 60);
    entry.thread = static_cast<std::uint32_t>(next() >> 62);
    entry.object = next();
    const std::int64_t ends[] = {INT64_MIN, INT64_MAX, 0, -1, static_cast<std::int64_t>(next())};
    entry.started_ns = ends[(next() >> 33) % 5];
    entry.ended_ns = ends[(next() >> 33) % 5];
    entries.push_back(entry);
  }
  for (std::size_t i = 0; i < entries.size(); i += 1000)
    if (const auto slow = finder.add(std::span(entries).subspan(i, 1000))) {
      EXPECT_GT(slow->took_ns, slow->median_ns);
    }
}

}  // namespace
}  // namespace weir
