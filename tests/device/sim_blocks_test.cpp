// Blocks, residency, priorities, engines and chance on the simulated device, against cases worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "device/sim_testing.h"

namespace weir {
namespace {

TEST(SimBlocks, a_launch_runs_in_waves) {
  TimedStep step;
  const CommandId kernel = step.spin(0, 1000, 10);
  const auto device = open_sim(plain_profile(1, 4));
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.ended(kernel), 3000);
  EXPECT_EQ(run.session->footprint(kernel)->blocks, 10u);
}

TEST(SimBlocks, later_kernels_take_what_older_ones_leave) {
  TimedStep step;
  const CommandId first = step.spin(0, 1000, 6);  // 4, then 2
  const CommandId second = step.spin(1, 300, 3);  // 2 beside them, then 1
  const auto device = open_sim(plain_profile(2, 4));
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.ended(first), 2000);
  EXPECT_EQ(run.started(second), 1000);
  EXPECT_EQ(run.ended(second), 1600);
}

TEST(SimBlocks, a_table_says_how_many_blocks_share_a_multiprocessor) {
  auto profile = plain_profile(2, 2);
  profile.slots_per_multiprocessor = 4;
  profile.durations.push_back({.of = {.name = "spin", .dims = {1000, 4}}, .ns = 1, .blocks_per_multiprocessor = 2});
  TimedStep step;
  const CommandId wide = step.spin(0, 1000, 4);  // two slots each: all 8
  const CommandId narrow = step.spin(1, 10, 8);  // one slot each
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.ended(wide), 1000);
  EXPECT_EQ(run.started(narrow), 1000);
  EXPECT_EQ(run.ended(narrow), 1010);
}

TEST(SimBlocks, no_more_kernels_are_resident_than_the_limit) {
  auto profile = plain_profile(4);
  profile.resident_kernels = 2;
  TimedStep step;
  step.spin(0, 1000);
  step.spin(1, 700);
  const CommandId third = step.spin(2, 100);
  const CommandId fourth = step.spin(3, 100);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.started(third), 700);
  EXPECT_EQ(run.started(fourth), 800);
}

TEST(SimBlocks, the_H200_shows_its_128_resident_kernels) {
  auto profile = sim::profile_named("h200");
  apply(profile, "queues", "128");
  apply(profile, "host.launch_ns", "0");
  const auto total = [&](StreamId count) {
    TimedStep step;
    for (StreamId stream = 0; stream < count; ++stream) step.spin(stream % 128, 2'000'000);
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    run.iterate();
    const auto span = run.session->take_spans().at(0);
    return static_cast<double>(span.ended_ns - span.started_ns) * 1e-6;
  };
  EXPECT_NEAR(total(128), 2.0, 0.1);
  EXPECT_NEAR(total(129), 4.0, 0.1);
}

TEST(SimBlocks, the_H200_takes_as_long_for_depth_first_issue_as_was_measured) {
  const auto total_ms = [](const char* queues) {
    auto profile = sim::profile_named("h200");
    apply(profile, "queues", queues);
    TimedStep step;
    for (StreamId stream = 0; stream < 32; ++stream)
      for (int i = 0; i < 4; ++i) step.spin(stream, 500'000);
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    const std::int64_t begun = run.now();
    run.iterate();
    return static_cast<double>(run.now() - begun) * 1e-6;
  };
  EXPECT_NEAR(total_ms("8"), 6.7, 0.67);
  EXPECT_NEAR(total_ms("32"), 2.6, 0.26);
}

TEST(SimBlocks, the_H200_launches_and_finishes_a_tiny_kernel_in_9_5_us) {
  const auto device = open_sim(sim::profile_named("h200"));
  TimedStep step;
  step.spin(0, 2000);
  SimRun run(*device, step);
  const std::int64_t begun = run.now();
  run.iterate();
  EXPECT_NEAR(static_cast<double>(run.now() - begun), 9500, 50);
}

// A kernel of three waves at 100 ns, an urgent one at 200: host launches are 100 ns apart.
struct Rivals {
  explicit Rivals(sim::Priorities priorities) {
    auto profile = plain_profile(2, 2);
    profile.priorities = priorities;
    profile.host.launch_ns = 100;
    profile.device.preempt_save_ns = 10;
    profile.device.preempt_restore_ns = 20;
    TimedStep step;
    low = step.spin(0, 1000, 6);
    urgent = step.spin(1, 500, 2, 1);
    device = open_sim(profile);
    run = std::make_unique<SimRun>(*device, step);
    run->iterate();
  }
  CommandId low = 0, urgent = 0;
  std::unique_ptr<Device> device;
  std::unique_ptr<SimRun> run;
};

TEST(SimPriority, ignored_and_order_let_the_older_kernel_finish) {
  for (const auto priorities : {sim::Priorities::ignored, sim::Priorities::order}) {
    const Rivals rivals(priorities);
    EXPECT_EQ(rivals.run->ended(rivals.low), 3100);
    EXPECT_EQ(rivals.run->started(rivals.urgent), 3100);
    EXPECT_EQ(rivals.run->ended(rivals.urgent), 3600);
  }
}

TEST(SimPriority, blocks_gives_free_slots_to_the_urgent_one) {
  const Rivals rivals(sim::Priorities::blocks);
  EXPECT_EQ(rivals.run->started(rivals.urgent), 1100);
  EXPECT_EQ(rivals.run->ended(rivals.urgent), 1600);
  EXPECT_EQ(rivals.run->ended(rivals.low), 3600);
}

TEST(SimPriority, full_sets_running_blocks_aside) {
  const Rivals rivals(sim::Priorities::full);
  EXPECT_EQ(rivals.run->started(rivals.urgent), 210);
  EXPECT_EQ(rivals.run->ended(rivals.urgent), 710);
  // 900 ns were left, and 20 to bring them back; then two more waves.
  EXPECT_EQ(rivals.run->ended(rivals.low), 710 + 920 + 2000);
}

TEST(SimPriority, full_sets_aside_no_more_than_is_wanted) {
  auto profile = plain_profile(2, 4);
  profile.priorities = sim::Priorities::full;
  profile.host.launch_ns = 100;
  TimedStep step;
  const CommandId low = step.spin(0, 1000, 4);
  const CommandId urgent = step.spin(1, 500, 1, 2);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.started(urgent), 200);
  EXPECT_EQ(run.ended(low), 700 + 900);  // three end at 1100, the one that was set aside goes on at 700
}

TEST(SimPriority, order_takes_the_urgent_one_of_those_that_wait) {
  for (const auto priorities : {sim::Priorities::ignored, sim::Priorities::order}) {
    auto profile = plain_profile(3);
    profile.priorities = priorities;
    profile.resident_kernels = 1;
    TimedStep step;
    step.spin(0, 1000);
    const CommandId low = step.spin(1, 100);
    const CommandId urgent = step.spin(2, 100, 1, 1);
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    run.iterate();
    const bool is_ordered = priorities == sim::Priorities::order;
    EXPECT_EQ(run.started(urgent), is_ordered ? 1000 : 1100);
    EXPECT_EQ(run.started(low), is_ordered ? 1100 : 1000);
  }
}

TEST(SimEngines, copies_wait_for_their_engine_and_no_other) {
  auto profile = plain_profile(4);
  profile.rates.to_device_bytes = profile.rates.to_host_bytes = 1e9;
  profile.device.copy_latency_ns = 50;
  for (const std::int64_t engines : {1, 2}) {
    profile.copy_engines.to_device = engines;
    TimedStep step;
    step.copy(0, Place::host, Place::device, 1000);
    const CommandId second = step.copy(1, Place::host, Place::device, 1000);
    const CommandId back = step.copy(2, Place::device, Place::host, 2000);
    const CommandId kernel = step.spin(3, 10);
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    run.iterate();
    EXPECT_EQ(run.started(second), engines == 1 ? 1050 : 0);
    EXPECT_EQ(run.ended(second), engines == 1 ? 2100 : 1050);
    EXPECT_EQ(run.ended(back), 2050);
    EXPECT_EQ(run.ended(kernel), 10);
  }
}

TEST(SimCost, a_duration_of_the_table_beats_the_cost_model) {
  auto profile = plain_profile(1, 2);
  const auto duration_of = [&] {
    TimedStep step;
    const BufferId data = step.data(4096);
    step.builder().launch("fill", {}, {.dims = {4096}, .scalars = {1.0f}}, {{data}});
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    run.iterate();
    return run.ended(0) - run.started(0);
  };
  profile.kernel_ns = 777;
  EXPECT_EQ(duration_of(), 8 * std::llround(777 / 8.0));  // 16 blocks on 2 multiprocessors: 8 waves
  profile.durations.push_back({.of = {.name = "fill", .dims = {4096}}, .ns = 1600, .blocks = 4});
  EXPECT_EQ(duration_of(), 1600);
  profile.scale = 1.5;
  EXPECT_EQ(duration_of(), 2400);
}

std::vector<std::int64_t> copy_times(const sim::SimProfile& profile) {
  TimedStep step;
  for (int i = 0; i < 500; ++i) step.copy(0, Place::host, Place::device, 100'000);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  std::vector<std::int64_t> times;
  for (const Span& span : run.session->timeline().spans) times.push_back(span.ended_ns - span.started_ns);
  return times;
}

TEST(SimChance, jitter_follows_the_seed_and_keeps_the_mean) {
  auto profile = plain_profile(1);
  profile.rates.to_device_bytes = 1e9;
  profile.jitter = 0.1;
  const auto first = copy_times(profile);
  EXPECT_EQ(first, copy_times(profile));
  double sum = 0, squares = 0;
  for (const std::int64_t ns : first) {
    sum += static_cast<double>(ns);
    squares += static_cast<double>(ns) * static_cast<double>(ns);
  }
  const double mean = sum / 500;
  EXPECT_NEAR(mean, 100'000, 2'000);
  EXPECT_NEAR(std::sqrt(squares / 500 - mean * mean), 10'000, 1'500);
  profile.seed = 2;
  EXPECT_NE(first, copy_times(profile));
}

TEST(SimChance, foreign_load_takes_its_share_of_the_time) {
  auto profile = plain_profile(1);
  profile.foreign_load = 0.5;
  profile.foreign_slice_ns = 100'000;
  TimedStep step;
  for (int i = 0; i < 1000; ++i) step.spin(0, 100'000);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  EXPECT_NEAR(static_cast<double>(run.now()) * 1e-6, 200, 30);
  const auto again = open_sim(profile);
  TimedStep same;
  for (int i = 0; i < 1000; ++i) same.spin(0, 100'000);
  SimRun repeated(*again, same);
  repeated.iterate();
  EXPECT_EQ(repeated.now(), run.now());
}

}  // namespace
}  // namespace weir
