// Every mechanism on the software GPU, with real threads: order of times, nothing lost or repeated. How long things
// take is printed, not judged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "device/cpu/test_parts.h"
#include "lab/preempt/experiment.h"

namespace weir::preempt {
namespace {

struct Case {
  std::string_view mechanism;
  Victim victim;
};

std::unique_ptr<Device> open(const Mechanism& mechanism, int workers = 2) {
  DeviceOptions options;
  options.workers = workers;
  if (mechanism.device_options != nullptr) options = mechanism.device_options(options);
  options.compute_units = 0;
  return cpu::open_cpu(options);
}

double p50_us(std::vector<Request> requests) {
  std::vector<double> waits;
  for (const Request& each : requests) waits.push_back(static_cast<double>(each.started_ns - each.due_ns) / 1e3);
  std::sort(waits.begin(), waits.end());
  return waits.empty() ? 0 : waits[waits.size() / 2];
}

void expect_in_order(const std::vector<Request>& requests, int count) {
  ASSERT_EQ(requests.size(), static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& each = requests[i];
    EXPECT_LE(each.due_ns, each.submitted_ns) << i;
    EXPECT_LE(each.submitted_ns, each.started_ns) << i;
    EXPECT_LE(each.started_ns, each.ended_ns) << i;
    if (i > 0) {
      EXPECT_LE(requests[i - 1].due_ns, each.due_ns) << i;
      EXPECT_LE(requests[i - 1].ended_ns, each.started_ns) << i;  // one stream: they queue
    }
  }
}

Observation observe(const Mechanism& mechanism, const Victim* victim, const ExperimentPlan& plan) {
  const auto device = open(mechanism);
  const Experiment experiment{device.get(), &plan, {}};
  return mechanism.observe(experiment, victim);
}

ExperimentPlan short_plan() {
  ExperimentPlan plan;
  plan.requests = 25;
  plan.interval_ns = 2'000'000;
  plan.undisturbed_ns = 50'000'000;
  return plan;
}

TEST(ContestCpu, every_mechanism_loses_and_repeats_nothing) {
  const ExperimentPlan plan = short_plan();
  const Victim victims[] = {
      {VictimKind::waves, 4, 200'000}, {VictimKind::persistent, 1, 300'000}, {VictimKind::memory, 3, 200'000}};
  for (const Mechanism& mechanism : mechanisms()) {
    const auto device = open(mechanism);
    if (const Capability offered = mechanism.offered(*device); !offered) {
      EXPECT_FALSE(offered.reason.empty());
      std::printf("%-17s not offered: %s\n", std::string(mechanism.name).c_str(), offered.reason.c_str());
      continue;
    }
    for (const Victim& victim : victims) {
      SCOPED_TRACE(std::string(mechanism.name) + ", " + std::string(name_of(victim.kind)));
      const Observation seen = observe(mechanism, &victim, plan);
      expect_in_order(seen.requests, plan.requests);
      EXPECT_EQ(seen.clock_error_ns, 0);
      std::printf("%-17s %-10s p50 to start %8.1f us, %llu preemptions\n", std::string(mechanism.name).c_str(),
                  std::string(name_of(victim.kind)).c_str(), p50_us(seen.requests),
                  static_cast<unsigned long long>(seen.preemptions));
      if (mechanism.is_between_processes) {
        EXPECT_EQ(seen.victim_wall_ns, 0);
        continue;
      }
      ASSERT_TRUE(seen.lost_blocks && seen.repeated_blocks);
      EXPECT_EQ(*seen.lost_blocks, 0u);
      EXPECT_EQ(*seen.repeated_blocks, 0u);
      EXPECT_GT(seen.victim_wall_ns, 0);
      EXPECT_GT(seen.victim_blocks, 0u);
      EXPECT_EQ(seen.blocks_at_once, 2u);
      if (mechanism.name != "cooperative_flag") {
        EXPECT_EQ(seen.preemptions, 0u);
      }
      // Blocks cannot be faster than their clock, and not more of them than there are workers run at once.
      if (victim.kind != VictimKind::memory) {
        EXPECT_GE(seen.block_ns, victim.block_ns);
        EXPECT_LE(static_cast<double>(seen.victim_blocks) * static_cast<double>(victim.block_ns),
                  2.0 * static_cast<double>(seen.victim_wall_ns));
      }
    }
  }
}

TEST(ContestCpu, the_intruder_alone_goes_the_same_way) {
  const ExperimentPlan plan = short_plan();
  const Observation seen = observe(mechanism_named("queues"), nullptr, plan);
  expect_in_order(seen.requests, plan.requests);
  EXPECT_EQ(seen.victim_wall_ns, 0);
  EXPECT_EQ(seen.victim_blocks, 0u);
  EXPECT_FALSE(seen.lost_blocks);
}

TEST(ContestCpu, the_victim_alone_has_its_full_throughput) {
  ExperimentPlan plan = short_plan();
  plan.requests = 0;
  const Victim victim{VictimKind::waves, 4, 500'000};
  for (const char* name : {"queues", "launch_gate", "cooperative_flag"}) {
    const Observation seen = observe(mechanism_named(name), &victim, plan);
    EXPECT_TRUE(seen.requests.empty());
    EXPECT_EQ(seen.preemptions, 0u);
    EXPECT_GT(seen.victim_wall_ns, 0);
    EXPECT_EQ(seen.victim_blocks % (4 * seen.blocks_at_once), 0u) << name;  // whole kernels
    EXPECT_EQ(seen.lost_blocks, 0u);
    EXPECT_EQ(seen.repeated_blocks, 0u);
  }
}

TEST(ContestCpu, the_victim_runs_until_it_is_told_to_end) {
  const ExperimentPlan plan = short_plan();
  const Victim victim{VictimKind::waves, 2, 200'000};
  const auto device = open(mechanism_named("time_slice"));
  int asked = 0;
  const Observation seen = run_victim({device.get(), &plan, {}}, victim, [&] { return ++asked > 100; });
  EXPECT_EQ(asked, 101);
  EXPECT_GT(seen.victim_blocks, 0u);
  EXPECT_EQ(seen.lost_blocks, 0u);
  EXPECT_EQ(seen.repeated_blocks, 0u);
}

TEST(ContestCpu, who_watches_can_end_it_and_what_was_seen_counts) {
  ExperimentPlan plan = short_plan();
  plan.requests = 100'000;
  const Victim victim{VictimKind::waves, 4, 200'000};
  for (const char* name : {"queues", "cooperative_flag"}) {
    const auto device = open(mechanism_named(name));
    int calls = 0, last = 0;
    const auto progress = [&](std::string_view, int done, int of) {
      EXPECT_EQ(of, plan.requests);
      last = done;
      return ++calls < 2;
    };
    const Observation seen = mechanism_named(name).observe({device.get(), &plan, progress}, &victim);
    EXPECT_GE(calls, 2);  // more where what was sent takes long to end
    EXPECT_GE(seen.requests.size(), static_cast<std::size_t>(last));
    EXPECT_LT(seen.requests.size(), 100'000u);
    expect_in_order(seen.requests, static_cast<int>(seen.requests.size()));
    EXPECT_EQ(seen.lost_blocks, 0u);
    EXPECT_EQ(seen.repeated_blocks, 0u);
  }
}

// A request in the middle of a job that is far from its end: almost each is a preemption.
TEST(ContestCpu, a_job_that_is_interrupted_again_and_again_is_done_exactly_once) {
  const bool is_long = std::getenv("WEIR_LONG_TESTS") != nullptr;
  const int wanted = is_long ? 10'000 : 200;
  const Mechanism& mechanism = mechanism_named("cooperative_flag");
  std::uint64_t preemptions = 0;
  for (std::uint64_t seed = 1; preemptions < static_cast<std::uint64_t>(wanted); ++seed) {
    ASSERT_LT(seed, 50u) << "requests meet no victim";
    ExperimentPlan plan;
    plan.requests = is_long ? 4'000 : 150;
    plan.interval_ns = 1'000'000;
    plan.seed = seed;
    const Victim victim{seed % 2 == 0 ? VictimKind::persistent : VictimKind::waves, 256, 50'000};
    const Observation seen = observe(mechanism, &victim, plan);
    expect_in_order(seen.requests, plan.requests);
    ASSERT_EQ(seen.lost_blocks, 0u);
    ASSERT_EQ(seen.repeated_blocks, 0u);
    preemptions += seen.preemptions;
  }
  std::printf("%llu preemptions, nothing lost, nothing repeated\n", static_cast<unsigned long long>(preemptions));
}

}  // namespace
}  // namespace weir::preempt
