// Gaps of chains and where queue counts cross: from numbers made by hand, and the shape of what the cpu device gives.
#include "lab/queues/switch_gaps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/sim/sim.h"
#include "lab/queues/queues_switch.h"

namespace weir {
namespace {

TEST(SwitchGaps, AreSubtractedAsIntegers) {
  const std::int64_t epoch = 1'763'000'000'000'000'000;  // ns since 1970: doubles are 256 ns apart here
  const std::vector<Moment> chain = {
      {epoch, epoch + 2'000}, {epoch + 3'501, epoch + 5'501}, {0, 0}, {epoch + 9'000, epoch + 9'500}};
  EXPECT_EQ(gaps_between(chain), std::vector<double>{1'501});
  EXPECT_TRUE(gaps_between({}).empty());
  const std::vector<Moment> coarse = {{1'000, 3'000}, {3'000, 4'000}, {8'000, 9'000}};
  EXPECT_EQ(clock_step_ns(coarse), 1'000);
  EXPECT_EQ(clock_step_ns({}), 0);
  EXPECT_FALSE(summarise_gaps({}).has_value());
  const std::vector<double> gaps = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_DOUBLE_EQ(summarise_gaps(gaps)->p50_ns, 6);
  EXPECT_DOUBLE_EQ(summarise_gaps(gaps)->p90_ns, 10);
}

TEST(SwitchTradeoff, RangesFollowTheCheapestLine) {
  // Hops and losses as an H200 shows them: 1, 8 and 32 queues.
  const std::vector<QueueCosts> costs = {{1, 1'800, 0.75}, {8, 3'600, 0.09}, {32, 5'400, 0.0}};
  const std::vector<BestRange> ranges = best_ranges(costs);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].queues, 1);
  EXPECT_NEAR(*ranges[0].to_ns, 1'800 / 0.66, 1e-6);
  EXPECT_EQ(ranges[1].queues, 8);
  EXPECT_NEAR(*ranges[1].to_ns, 1'800 / 0.09, 1e-6);
  EXPECT_EQ(ranges[2].queues, 32);
  EXPECT_FALSE(ranges[2].to_ns.has_value());
  // The cheapest at each duration is the one of its range.
  for (const double kernel_ns : {100.0, 5'000.0, 50'000.0}) {
    const auto cheapest = std::min_element(costs.begin(), costs.end(), [&](const QueueCosts& a, const QueueCosts& b) {
      return a.cost_ns(kernel_ns) < b.cost_ns(kernel_ns);
    });
    const auto range = std::find_if(ranges.begin(), ranges.end(), [&](const BestRange& candidate) {
      return !candidate.to_ns || kernel_ns < *candidate.to_ns;
    });
    EXPECT_EQ(range->queues, cheapest->queues) << kernel_ns;
  }
}

TEST(SwitchTradeoff, EqualAndUselessQueueCountsDrop) {
  EXPECT_TRUE(best_ranges({}).empty());
  const std::vector<QueueCosts> same = {{8, 100, 0.1}, {4, 100, 0.1}};
  ASSERT_EQ(best_ranges(same).size(), 1u);
  EXPECT_EQ(best_ranges(same)[0].queues, 4);
  // 8 is never best: 16 has overtaken it before it overtakes 1.
  const std::vector<QueueCosts> hidden = {{1, 100, 1.0}, {8, 1'000, 0.9}, {16, 200, 0.1}};
  ASSERT_EQ(best_ranges(hidden).size(), 2u);
  EXPECT_EQ(best_ranges(hidden)[1].queues, 16);
}

TEST(SwitchGaps, CpuChainsHaveEveryReading) {
  const auto device = open_device("cpu", {.hardware_queues = 2, .workers = 6, .sim = {}});
  SwitchRequest request;
  request.hops = 64;
  request.repetitions = 2;
  request.parallel_ns = 50'000;
  const StreamSwitch found = measure_switch_gaps(*device, 4, request);
  ASSERT_TRUE(found.hops.value && found.graph.value) << found.hops.reason << found.graph.reason;
  EXPECT_EQ(found.hops.value->count, 2u * 63);
  EXPECT_GE(found.hops.value->p50_ns, 0);
  EXPECT_GE(found.hops.value->p90_ns, found.hops.value->p50_ns);
  ASSERT_TRUE(found.within_queue.value && found.across_queues.value) << found.within_queue.reason;
  // Every second kernel stays: of 31 hops each repetition, and a shuffle may stay by chance.
  EXPECT_LE(found.within_queue.value->count + found.across_queues.value->count, 2u * 31);
  EXPECT_TRUE(found.was_queued_ahead);
  ASSERT_TRUE(found.serialisation.value);
  EXPECT_EQ(found.serialisation.value->kernels, 16);
  // Two streams share each queue: 3 of the first one's kernels pass before the second one's start.
  EXPECT_GE(found.serialisation.value->makespan_ns, 7 * 50'000);
  EXPECT_GE(found.serialisation.value->ideal_ns, 4 * 50'000);
}

TEST(SwitchGaps, ACoarseClockIsNoBaseForGaps) {
  DeviceOptions options;
  options.sim = {{"timer_ns", "1000000"}};
  const StreamSwitch coarse = measure_switch_gaps(*open_device("sim:toy", options), 2, {.hops = 20, .repetitions = 2});
  EXPECT_FALSE(coarse.hops.value);
  EXPECT_NE(coarse.hops.reason.find("too coarse"), std::string::npos) << coarse.hops.reason;
  // Where nothing costs anything all times are equal, which is no reason to distrust the clock.
  const StreamSwitch fine = measure_switch_gaps(*open_device("sim:toy", {}), 2, {.hops = 20, .repetitions = 2});
  ASSERT_TRUE(fine.hops.value) << fine.hops.reason;
  EXPECT_EQ(fine.hops.value->p50_ns, 0);
}

// Hops get dearer with the queues in use, and towards the end of a chain streams run out of commands: only hops while
// all of them have some may count.
TEST(SwitchGaps, ManyStreamsCostWhatTheProfileSays) {
  for (const int streams : {2, 8, 32, 64, 128}) {
    sim::SimProfile profile = sim::profile_named("h200");
    profile.mapping = sim::Mapping::round_robin;
    profile.max_streams = 512;
    profile.queues = streams;
    profile.device.switch_ns = 1500;
    profile.device.switch_per_doubling_ns = 500;
    const auto device = open_sim(profile);
    const double truth = 1500 + 500 * std::log2(streams);
    const SwitchCost controlled = measure_switch_cost(*device, streams);
    ASSERT_TRUE(controlled.ns_per_hop) << controlled.reason;
    EXPECT_NEAR(*controlled.ns_per_hop, truth, 0.02 * truth) << streams;
    EXPECT_EQ(controlled.streams, streams);
    SwitchRequest request;
    request.repetitions = 1;
    const auto hops = measure_hop_gaps(*device, streams, request);
    ASSERT_TRUE(hops);
    EXPECT_NEAR(hops->p50_ns, static_cast<double>(profile.device.stream_gap_ns) + truth, 0.02 * truth) << streams;
  }
}

TEST(SwitchGaps, OneStreamSaysWhatItHasNot) {
  const auto device = open_device("cpu", {.hardware_queues = 2, .workers = 3, .sim = {}});
  SwitchRequest request;
  request.hops = 16;
  request.repetitions = 1;
  request.parallel_ns = 20'000;
  const StreamSwitch found = measure_switch_gaps(*device, 1, request);
  EXPECT_TRUE(found.hops.value.has_value());
  EXPECT_FALSE(found.across_queues.value.has_value());
  EXPECT_NE(found.across_queues.reason.find("one stream"), std::string::npos);
  EXPECT_FALSE(found.controlled.ns_per_hop.has_value());
}

}  // namespace
}  // namespace weir
