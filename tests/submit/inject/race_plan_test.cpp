// What the library inside a program knows of `weir race` without a vendor: the plan's reader, and blocks of memory.
#include "submit/inject/race_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "submit/inject/race_memory.h"
#include "trace/race_format.h"

namespace weir::testing {
namespace {

namespace format = race_format;
using inject::read_race_plan;

TEST(RacePlanTest, reads_each_instruction) {
  std::string reason;
  const auto plan = read_race_plan(
      "weir race plan 1\nobserve\nblind 7 4 400000\nmost 12\ndelay 1.2 9\nwait 1.2 3.4\njoin 1.2\nhash 5.6\nstack "
      "5.6\n",
      reason);
  ASSERT_TRUE(plan) << reason;
  EXPECT_TRUE(plan->observes && plan->has_kernels());
  EXPECT_EQ(plan->most, 12u);
  EXPECT_EQ(plan->orders_of({1, 2})->delay_ns, 9);
  EXPECT_TRUE(plan->orders_of({1, 2})->joins);
  EXPECT_EQ(plan->orders_of({1, 2})->recorded, std::vector<std::uint32_t>{0});
  EXPECT_EQ(plan->orders_of({3, 4})->awaited, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(plan->orders_of({5, 6})->hashes && plan->orders_of({5, 6})->shows_stack);
  EXPECT_EQ(plan->orders_of({2, 1}), nullptr);
  EXPECT_EQ(plan->blind_delay({1, 1}), format::mix(7, 1, 1) % 4 == 0 ? 400000 : 0);
}

TEST(RacePlanTest, follows_no_plan_of_which_any_line_makes_no_sense) {
  const std::string title = "weir race plan 1\n";
  std::string many = title;
  for (std::uint32_t i = 0; i <= format::kMostInstructions; ++i) many += "join 1.1\n";
  const std::string bad[] = {"",
                             "observe\n",
                             "weir race plan 2\n",
                             title + "observe",
                             title + "\n",
                             title + "observe now\n",
                             title + "delay 1.2\n",
                             title + "delay 1.2 0\n",
                             title + "delay 1.2 10000001\n",
                             title + "delay 1.2 -5\n",
                             title + "delay 0.2 5\n",
                             title + "delay 12 5\n",
                             title + "delay 1.99999999999999999999 5\n",
                             title + "wait 1.1 1.1\n",
                             title + "wait 1.1\n",
                             title + "blind 1 0 5\n",
                             title + "blind 1 2 99999999999\n",
                             title + "most 10001\n",
                             title + "hash 1.1 1.2\n",
                             title + "exec 1.1\n",
                             title + std::string("observe\0\n", 9),
                             many};
  for (const std::string& text : bad) {
    std::string reason;
    EXPECT_FALSE(read_race_plan(text, reason)) << text.substr(0, 80);
    EXPECT_FALSE(reason.empty()) << text.substr(0, 80);
  }
  std::string reason;
  EXPECT_TRUE(read_race_plan(title, reason)) << reason;
}

TEST(RaceMemoryTest, knows_which_block_an_address_is_in) {
  inject::RaceMemory memory;
  EXPECT_EQ(memory.find(100), nullptr);
  memory.add({100, 50, false});
  memory.add({200, 50, true});
  EXPECT_EQ(memory.find(99), nullptr);
  EXPECT_EQ(memory.find(149)->begin, 100u);
  EXPECT_EQ(memory.find(150), nullptr);
  EXPECT_TRUE(memory.find(200)->is_host);
  memory.add({140, 70, false});  // the ends of both were not seen
  EXPECT_EQ(memory.find(100), nullptr);
  EXPECT_EQ(memory.find(209)->begin, 140u);
  EXPECT_EQ(memory.find(210), nullptr);
  EXPECT_FALSE(memory.remove(141));
  EXPECT_EQ(memory.remove(140)->bytes, 70u);
  EXPECT_EQ(memory.find(140), nullptr);
  memory.add({UINT64_MAX - 1, 50, false});
  EXPECT_TRUE(memory.blocks().empty());
}

}  // namespace
}  // namespace weir::testing
