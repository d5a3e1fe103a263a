#include "lab/kernels/batch.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::testing {
namespace {

using bench::batch_for;
using bench::batch_goal;
using bench::BatchGoal;
using bench::find_batch;

TEST(BenchBatch, is_the_smallest_that_the_clock_resolves) {
  for (double resolution = 1; resolution <= 1e6; resolution *= 7)
    for (double run = 1; run <= 1e8; run *= 3.3) {
      const BatchGoal goal = batch_goal(resolution, true, 1e9, 30);
      const std::uint64_t batch = batch_for(run, goal);
      EXPECT_LE(resolution, 0.001 * run * static_cast<double>(batch) * (1 + 1e-9)) << run << " " << resolution;
      EXPECT_TRUE(batch == 1 || run * static_cast<double>(batch - 1) < goal.min_ns) << run << " " << resolution;
    }
}

TEST(BenchBatch, costs_of_the_clock_do_not_matter_either) {
  EXPECT_GE(batch_goal(1, true, 30, 30).min_ns, 1000 * bench::kHostClockCostNs);
  EXPECT_GE(batch_goal(1, false, 30, 30).min_ns, 1000 * bench::kDeviceClockCostNs);
}

TEST(BenchBatch, a_sample_fits_its_share_of_the_budget) {
  for (double run = 100; run <= 1e10; run *= 5) {
    const std::uint64_t batch = batch_for(run, batch_goal(1e9, false, 3, 30));
    EXPECT_TRUE(batch == 1 || run * static_cast<double>(batch) <= 3e9 / 30 / 2 * (1 + 1e-9)) << run;
  }
}

TEST(BenchBatch, odd_durations_give_a_batch_within_bounds) {
  const BatchGoal goal = batch_goal(25, true, 30, 30);
  for (const double run :
       {0.0, -5.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e-300, 1e300}) {
    EXPECT_GE(batch_for(run, goal), 1u);
    EXPECT_LE(batch_for(run, goal), bench::kMaxRuns);
  }
  EXPECT_EQ(batch_for(1e300, goal), 1u);
}

TEST(BenchBatch, grows_where_runs_are_faster_than_they_looked) {
  const BatchGoal goal = batch_goal(25, true, 30, 30);
  int calls = 0;
  const std::uint64_t batch = find_batch(50'000, goal, [&](std::uint64_t count) {
    ++calls;
    return 10.0 * static_cast<double>(count);
  });
  EXPECT_GE(10.0 * static_cast<double>(batch), goal.min_ns);
  EXPECT_LE(10.0 * static_cast<double>(batch), 1.2 * goal.min_ns);
  EXPECT_LE(calls, 12);
}

TEST(BenchBatch, ends_where_no_time_passes_at_all) {
  int calls = 0;
  const std::uint64_t batch = find_batch(1000, batch_goal(25, true, 30, 30), [&](std::uint64_t) {
    ++calls;
    return 0.0;
  });
  EXPECT_LE(batch, bench::kMaxRuns);
  EXPECT_LE(calls, 12);
}

}  // namespace
}  // namespace weir::testing
