// Every mechanism on a simulated GPU: time is virtual, so latencies follow from block times and can be worked out.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/sim_testing.h"
#include "lab/preempt/experiment.h"

namespace weir::preempt {
namespace {

constexpr std::int64_t kBlockNs = 100'000;
constexpr std::int64_t kSlackNs = 5'000;  // the host looks every microsecond
constexpr int kWaves = 4;

sim::SimProfile profile(std::int64_t queues) {
  sim::SimProfile profile = plain_profile(queues, 8);
  profile.slots_per_multiprocessor = 4;
  profile.host.clock_ns = 1;
  return profile;
}

ExperimentPlan plan(int requests = 400) {
  ExperimentPlan plan;
  plan.requests = requests;
  plan.interval_ns = 1'300'000;
  plan.queued_ahead = 4;
  return plan;
}

Observation observe(std::string_view name, const Victim* victim, const ExperimentPlan& plan, std::int64_t queues = 8) {
  const auto device = open_sim(profile(name == "none" ? 1 : queues));
  const Mechanism& mechanism = mechanism_named(name);
  EXPECT_TRUE(mechanism.offered(*device)) << mechanism.offered(*device).reason;
  return mechanism.observe({device.get(), &plan, {}}, victim);
}

// From due to start, smallest first; of requests that found none of their own kind before them.
std::vector<std::int64_t> waits(const Observation& seen) {
  std::vector<std::int64_t> all;
  std::int64_t last_ended_ns = INT64_MIN;
  for (const Request& each : seen.requests) {
    EXPECT_LE(each.due_ns, each.submitted_ns);
    EXPECT_LE(each.submitted_ns, each.started_ns);
    EXPECT_LE(each.started_ns, each.ended_ns);
    if (each.due_ns > last_ended_ns) all.push_back(each.started_ns - each.due_ns);
    last_ended_ns = each.ended_ns;
  }
  EXPECT_FALSE(all.empty());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(ContestSim, alone_nobody_waits) {
  const Observation seen = observe("queues", nullptr, plan());
  EXPECT_EQ(seen.requests.size(), 400u);
  EXPECT_LE(waits(seen).back(), kSlackNs);
  EXPECT_EQ(seen.victim_wall_ns, 0);
}

TEST(ContestSim, a_flag_costs_a_block_and_loses_nothing) {
  const Victim victim{VictimKind::waves, 64, kBlockNs};
  const Observation seen = observe("cooperative_flag", &victim, plan());
  const auto all = waits(seen);
  EXPECT_LE(all.back(), kBlockNs + kSlackNs);
  EXPECT_GT(all[all.size() * 9 / 10], kBlockNs / 2);  // evenly spread over a block
  EXPECT_GT(seen.preemptions, 300u);
  EXPECT_EQ(seen.lost_blocks, 0u);
  EXPECT_EQ(seen.repeated_blocks, 0u);
  EXPECT_EQ(seen.blocks_at_once, 32u);
  EXPECT_EQ(seen.block_ns, kBlockNs);
}

TEST(ContestSim, priority_waits_for_a_block_and_equals_for_a_kernel) {
  const Victim victim{VictimKind::waves, kWaves, kBlockNs};
  EXPECT_LE(waits(observe("priority", &victim, plan())).back(), kBlockNs + kSlackNs);
  const auto equal = waits(observe("queues", &victim, plan()));
  EXPECT_GT(equal[equal.size() / 2], kBlockNs);
  EXPECT_LE(equal.back(), kWaves * kBlockNs + kSlackNs);
}

TEST(ContestSim, one_queue_makes_it_wait_for_all_that_is_queued) {
  const Victim victim{VictimKind::waves, kWaves, kBlockNs};
  const auto all = waits(observe("none", &victim, plan()));
  EXPECT_GT(all[all.size() / 2], 2 * kWaves * kBlockNs);
  EXPECT_LE(all.back(), 5 * kWaves * kBlockNs + kSlackNs);
}

TEST(ContestSim, a_gate_bounds_it_by_what_is_in_flight) {
  const Victim victim{VictimKind::waves, kWaves, kBlockNs};
  ExperimentPlan one = plan(), two = plan();
  one.in_flight = 1;
  two.in_flight = 2;
  const std::int64_t kernel_ns = kWaves * kBlockNs;
  EXPECT_LE(waits(observe("launch_gate", &victim, one, 1)).back(), kernel_ns + kSlackNs);
  const auto all = waits(observe("launch_gate", &victim, two, 1));
  EXPECT_LE(all.back(), 2 * kernel_ns + kSlackNs);
  EXPECT_GT(all.back(), kernel_ns);
}

// Blocks that go on and on leave nothing to be reordered.
TEST(ContestSim, a_persistent_kernel_gives_way_to_a_flag_alone) {
  const Victim victim{VictimKind::persistent, 1, kBlockNs};
  const ExperimentPlan few = plan(100);
  EXPECT_GT(waits(observe("priority", &victim, few)).back(), 100 * kBlockNs);
  const Observation reported = observe("cooperative_flag", &victim, few);
  EXPECT_LE(waits(reported).back(), kBlockNs + kSlackNs);
  EXPECT_GT(reported.preemptions, 60u);
  EXPECT_EQ(reported.lost_blocks, 0u);
  EXPECT_EQ(reported.repeated_blocks, 0u);
  // What a simulated block of many units has done is not known.
  EXPECT_FALSE(observe("queues", &victim, few).lost_blocks);
}

TEST(ContestSim, memory_is_read_for_as_long_as_a_block_should_last) {
  const Victim victim{VictimKind::memory, kWaves, kBlockNs};
  const Observation seen = observe("cooperative_flag", &victim, plan(100));
  EXPECT_NEAR(static_cast<double>(seen.block_ns), kBlockNs, 0.02 * kBlockNs);
  EXPECT_GT(seen.block_words, 0);
  EXPECT_EQ(seen.lost_blocks, 0u);
}

TEST(ContestSim, the_victim_alone_runs_without_a_gap) {
  ExperimentPlan none = plan(0);
  none.undisturbed_ns = 20'000'000;
  const Victim victim{VictimKind::waves, kWaves, kBlockNs};
  for (const char* name : {"queues", "priority", "cooperative_flag"}) {
    const Observation seen = observe(name, &victim, none);
    EXPECT_GE(seen.victim_wall_ns, 19'000'000) << name;
    EXPECT_EQ(seen.victim_blocks, static_cast<std::uint64_t>(32 * seen.victim_wall_ns / kBlockNs)) << name;
    EXPECT_EQ(seen.lost_blocks, 0u) << name;
    EXPECT_EQ(seen.repeated_blocks, 0u) << name;
  }
}

// Requests that come faster than the victim makes room wait in line; none is left out or merged with another.
TEST(ContestSim, late_requests_queue) {
  ExperimentPlan dense = plan(500);
  dense.interval_ns = 50'000;
  dense.intruder_ns = 10'000;
  const Victim victim{VictimKind::waves, kWaves, kBlockNs};
  for (const char* name : {"none", "queues", "launch_gate", "cooperative_flag"}) {
    const Observation seen = observe(name, &victim, dense);
    ASSERT_EQ(seen.requests.size(), 500u) << name;
    const auto due = due_times(dense);
    for (std::size_t i = 1; i < due.size(); ++i) {
      EXPECT_EQ(seen.requests[i].due_ns - seen.requests[0].due_ns, due[i] - due[0]) << name;
      EXPECT_GE(seen.requests[i].started_ns, seen.requests[i - 1].ended_ns) << name;
      EXPECT_LE(seen.requests[i].submitted_ns - seen.requests[i].due_ns, kSlackNs) << name;
    }
    EXPECT_EQ(seen.lost_blocks, 0u) << name;
    EXPECT_EQ(seen.repeated_blocks, 0u) << name;
  }
}

TEST(ContestSim, the_same_plan_gives_the_same_times) {
  const Victim victim{VictimKind::waves, 8, kBlockNs};
  const Observation first = observe("cooperative_flag", &victim, plan(100)),
                    second = observe("cooperative_flag", &victim, plan(100));
  ASSERT_EQ(first.requests.size(), second.requests.size());
  for (std::size_t i = 0; i < first.requests.size(); ++i)
    EXPECT_EQ(first.requests[i].ended_ns - first.requests[0].due_ns,
              second.requests[i].ended_ns - second.requests[0].due_ns);
  EXPECT_EQ(first.victim_blocks, second.victim_blocks);
}

TEST(ContestSim, between_processes_there_is_no_simulated_device) {
  const auto device = open_sim(profile(8));
  const Capability offered = mechanism_named("time_slice").offered(*device);
  EXPECT_FALSE(offered);
  EXPECT_EQ(offered.reason, "a simulated device belongs to one process");
}

}  // namespace
}  // namespace weir::preempt
