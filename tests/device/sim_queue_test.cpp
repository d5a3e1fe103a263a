// Hardware queues of the simulated device against cases worked out by hand: order, gaps, depth, mapping, graphs.
#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/sim_testing.h"
#include "kernel/moment.h"

namespace weir {
namespace {

// 4 spins of 0.5 ms per stream on 32 streams, all of a stream before the next one's.
std::int64_t depth_first_ns(std::int64_t queues) {
  TimedStep step;
  for (StreamId stream = 0; stream < 32; ++stream)
    for (int i = 0; i < 4; ++i) step.spin(stream, 500'000);
  const auto device = open_sim(plain_profile(queues));
  SimRun run(*device, step);
  run.iterate();
  const auto spans = run.session->take_spans();
  EXPECT_EQ(spans.size(), 1u);
  return spans[0].ended_ns - spans[0].started_ns;
}

TEST(SimQueue, depth_first_issue_serialises_streams_that_share_a_queue) {
  // Each stream adds three spins to its queue, the last one its fourth: 4 x 1.5 + 0.5 ms.
  EXPECT_EQ(depth_first_ns(8), 6'500'000);
  EXPECT_EQ(depth_first_ns(32), 2'000'000);
  EXPECT_EQ(depth_first_ns(1), 32 * 1'500'000 + 500'000);
}

TEST(SimQueue, a_blocked_head_blocks_everybody_behind_it) {
  for (const std::int64_t queues : {1, 2}) {
    TimedStep step;
    step.spin(0, 1000);
    const CommandId second = step.spin(0, 1000);
    const CommandId other = step.spin(1, 1000);
    const auto device = open_sim(plain_profile(queues));
    SimRun run(*device, step);
    run.iterate();
    EXPECT_EQ(run.started(second), 1000);
    EXPECT_EQ(run.started(other), queues == 1 ? 1000 : 0);
    EXPECT_EQ(run.now(), 2000);
  }
}

TEST(SimQueue, a_running_kernel_with_nothing_behind_it_blocks_nobody) {
  TimedStep step;
  step.spin(0, 1'000'000);
  const CommandId other = step.spin(1, 1000);
  const auto device = open_sim(plain_profile(1));
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.started(other), 0);
}

TEST(SimQueue, with_barriers_a_queue_runs_one_command_at_a_time) {
  TimedStep step;
  step.spin(0, 1'000'000);
  const CommandId other = step.spin(1, 1000);
  auto profile = plain_profile(1);
  profile.barrier = 1;
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.started(other), 1'000'000);
}

// Streams 0 and 1 share the queue: A1 (1 us), B1 (5 us), A2 and B2 (1 us each), in this order.
TEST(SimQueue, a_barrier_may_be_left_out_where_the_stream_does_not_need_it) {
  struct Case {
    std::int64_t barrier, b1, a2, b2;
  };
  for (const Case& expected : {
           Case{0, 0, 1000, 5000},     // only the order of streams counts; B2 waits for B1
           Case{1, 1000, 6000, 7000},  // one after the other
           Case{2, 0, 5000, 5000},     // the first of each stream has none, A2 has one, and B2 is covered by that
       }) {
    TimedStep step;
    step.spin(0, 1000);
    const CommandId b1 = step.spin(1, 5000), a2 = step.spin(0, 1000), b2 = step.spin(1, 1000);
    auto profile = plain_profile(1);
    profile.barrier = expected.barrier;
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    run.iterate();
    EXPECT_EQ(run.started(b1), expected.b1) << expected.barrier;
    EXPECT_EQ(run.started(a2), expected.a2) << expected.barrier;
    EXPECT_EQ(run.started(b2), expected.b2) << expected.barrier;
  }
}

// A stream that moves to another queue has nothing there that it would have to wait for.
TEST(SimQueue, a_stream_that_took_a_new_queue_needs_no_barrier_there) {
  auto profile = plain_profile(1);
  profile.barrier = 2;
  for (const sim::Mapping mapping : {sim::Mapping::round_robin, sim::Mapping::load_based}) {
    profile.mapping = mapping;
    TimedStep step;
    const CommandId first = step.spin(0, 1000);
    const CommandId long_one = step.spin(1, 9000);
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    run.iterate();
    EXPECT_EQ(run.started(first), run.started(long_one));
    // In the next iteration the stream's last command is in the queue still, unless the stream takes a queue anew.
    run.session->begin_iteration();
    run.session->submit(std::vector<CommandId>{long_one, first});
    run.session->finish();
    const std::int64_t later = run.span(first, 1).started_ns - run.span(long_one, 1).started_ns;
    EXPECT_EQ(later, 0) << sim::name_of(mapping);
  }
}

TEST(SimQueue, gaps_are_as_the_profile_says) {
  auto profile = plain_profile(1);
  profile.device.stream_gap_ns = 1500;
  profile.device.event_gap_ns = 300;
  profile.device.switch_ns = 2000;
  profile.device.switch_per_doubling_ns = 10;
  const auto gap_on = [&](std::int64_t queues, StreamId second_stream, int busy = 0) {
    profile.queues = queues;
    TimedStep step;
    for (int i = 0; i < busy; ++i) step.spin(static_cast<StreamId>(2 + i), 100'000);
    const BufferId data = step.data();
    const CommandId first = step.spin_on(data, 0, 1000);
    const CommandId second = step.spin_on(data, second_stream, 1000);
    const auto device = open_sim(profile);
    SimRun run(*device, step);
    run.iterate();
    return run.started(second) - run.ended(first);
  };
  EXPECT_EQ(gap_on(1, 0), 1500);
  EXPECT_EQ(gap_on(1, 1), 1800);
  // The waiting queue is the only one that still has commands.
  EXPECT_EQ(gap_on(2, 1), 1500 + 2000);
  // Four queues with commands are two doublings.
  EXPECT_EQ(gap_on(5, 1, 3), 1500 + 2000 + 2 * 10);
}

TEST(SimQueue, a_table_does_not_change_what_ends_by_the_clock) {
  // More blocks than the launch has moments for: a write beyond them, if the table were believed.
  const auto profile = sim::load_profile(
      "queues: 1\ndurations:\n"
      "  - {kernel: stamp, type: i32, precision: fp32, dims: [5000, 1], ns: 9, blocks: 2000000}\n"
      "  - {kernel: spin, type: f32, precision: fp32, dims: [1000, 1], ns: 9, blocks: 7}\n",
      "test.yaml");
  TimedStep step;
  const CommandId spin = step.spin(0, 1000);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.ended(spin) - run.started(spin), 1000);
}

TEST(SimQueue, the_front_end_and_the_doorbell_take_their_time) {
  auto profile = plain_profile(1);
  profile.host.launch_ns = 100;
  profile.device.doorbell_ns = 40;
  profile.device.launch_ns = 7;
  TimedStep step;
  const CommandId first = step.spin(0, 10);
  const CommandId second = step.spin(1, 10);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.iterate();
  // A call takes from `submitted` to `accepted`.
  EXPECT_EQ(run.span(first).submitted_ns - sim::Machine::kStartNs, 0);
  EXPECT_EQ(run.span(first).accepted_ns - sim::Machine::kStartNs, 100);
  EXPECT_EQ(run.span(second).submitted_ns - sim::Machine::kStartNs, 100);
  EXPECT_EQ(run.span(second).accepted_ns - sim::Machine::kStartNs, 200);
  EXPECT_EQ(run.started(first), 147);
  EXPECT_EQ(run.started(second), 247);
  EXPECT_EQ(run.now(), 257);
}

TEST(SimQueue, a_full_queue_blocks_the_host) {
  auto profile = plain_profile(1);
  profile.queue_depth = 2;
  profile.host.launch_ns = 10;
  TimedStep step;
  for (int i = 0; i < 4; ++i) step.spin(0, 1000);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  run.session->begin_iteration();
  run.session->submit(std::span(run.ids).first(3));
  EXPECT_EQ(run.now(), 30);  // one runs, two are pending
  run.session->submit(std::span(run.ids).subspan(3));
  EXPECT_EQ(run.now(), 1010);  // when the second one was launched
  run.session->finish();
  EXPECT_EQ(run.now(), 4010);
}

// Where each of `count` streams runs one command, all submitted at once.
std::vector<std::int32_t> queues_of(Device& device, StreamId count, std::unique_ptr<SimRun>& run) {
  TimedStep step;
  for (StreamId stream = 0; stream < count; ++stream) step.spin(stream, 1000);
  run = std::make_unique<SimRun>(device, step);
  run->iterate();
  std::vector<std::int32_t> queues;
  for (CommandId id = 0; id < count; ++id) queues.push_back(run->queue(id));
  return queues;
}

TEST(SimMapping, round_robin_goes_on_over_the_life_of_the_device) {
  const auto device = open_sim(plain_profile(4));
  std::unique_ptr<SimRun> first, second;
  EXPECT_EQ(queues_of(*device, 6, first), (std::vector<std::int32_t>{0, 1, 2, 3, 0, 1}));
  first.reset();
  EXPECT_EQ(queues_of(*device, 3, second), (std::vector<std::int32_t>{2, 3, 0}));
}

TEST(SimMapping, least_referenced_takes_back_what_a_session_had) {
  auto profile = plain_profile(3);
  profile.mapping = sim::Mapping::least_referenced;
  const auto device = open_sim(profile);
  std::unique_ptr<SimRun> first, second, third;
  EXPECT_EQ(queues_of(*device, 4, first), (std::vector<std::int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(queues_of(*device, 1, second), (std::vector<std::int32_t>{1}));
  first.reset();
  EXPECT_EQ(queues_of(*device, 3, third), (std::vector<std::int32_t>{0, 2, 0}));
}

TEST(SimMapping, fixed_follows_its_table) {
  auto profile = plain_profile(3);
  profile.mapping = sim::Mapping::fixed;
  profile.map = {2, 2, 0};
  const auto device = open_sim(profile);
  std::unique_ptr<SimRun> first, second;
  EXPECT_EQ(queues_of(*device, 4, first), (std::vector<std::int32_t>{2, 2, 0, 2}));
  EXPECT_EQ(queues_of(*device, 2, second), (std::vector<std::int32_t>{2, 0}));
}

TEST(SimMapping, load_based_takes_the_emptiest_queue_and_prefers_its_home) {
  auto profile = plain_profile(3);
  profile.mapping = sim::Mapping::load_based;
  const auto device = open_sim(profile);
  TimedStep step;
  const CommandId a = step.spin(3, 1000);  // home 0
  const CommandId b = step.spin(0, 1000);  // home 0, which is taken: the first one behind it
  const CommandId c = step.spin(2, 1000);  // home 2
  const CommandId d = step.spin(1, 1000);  // all have one: home 1
  const CommandId e = step.spin(3, 1000);  // busy: stays
  const CommandId f = step.spin(4, 1000);  // home 1 has two, 2 and 0: 2 has one, and comes first behind 1
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.queue(a), 0);
  EXPECT_EQ(run.queue(b), 1);
  EXPECT_EQ(run.queue(c), 2);
  EXPECT_EQ(run.queue(d), 1);
  EXPECT_EQ(run.queue(e), 0);
  EXPECT_EQ(run.queue(f), 2);
}

TEST(SimMapping, load_based_goes_by_what_has_not_ended) {
  auto profile = plain_profile(2);
  profile.mapping = sim::Mapping::load_based;
  const auto device = open_sim(profile);
  TimedStep step;
  step.spin(0, 1000);
  const CommandId later = step.spin(2, 1000);
  step.spin(1, 1);
  SimRun run(*device, step);
  run.session->begin_iteration();
  run.session->submit(std::vector<CommandId>{0});
  run.session->pause(500);
  run.session->submit(std::vector<CommandId>{later});  // home 0 is busy
  run.session->pause(700);
  run.session->submit(std::vector<CommandId>{2});  // queue 0 has ended its command, home 1 has one
  run.session->finish();
  EXPECT_EQ(run.queue(later), 1);
  EXPECT_EQ(run.queue(2), 0);
}

TEST(SimMapping, rotating_moves_on_whenever_a_stream_becomes_busy) {
  auto profile = plain_profile(3);
  profile.mapping = sim::Mapping::rotating;
  const auto device = open_sim(profile);
  std::unique_ptr<SimRun> run;
  EXPECT_EQ(queues_of(*device, 2, run), (std::vector<std::int32_t>{0, 1}));
  run->iterate();
  EXPECT_EQ(run->span(0, 1).queue, 2);
  EXPECT_EQ(run->span(1, 1).queue, 0);
}

TEST(SimGraph, nodes_follow_their_dependencies_and_not_the_queues) {
  auto profile = plain_profile(1);
  profile.host.graph_ns = 100;
  profile.device.graph_gap_ns = 30;
  profile.device.graph_node_ns = 5;
  TimedStep step;
  const BufferId data = step.data();
  const CommandId first = step.spin_on(data, 0, 1000);
  const CommandId second = step.spin_on(data, 0, 1000);
  const CommandId other = step.spin(1, 400);  // behind a blocked head, were it not a graph
  const auto device = open_sim(profile);
  SimRun run(*device, step, {.mode = SubmitMode::graph});
  run.iterate();
  EXPECT_EQ(run.span(second).submitted_ns - sim::Machine::kStartNs, 0);
  EXPECT_EQ(run.span(second).accepted_ns - sim::Machine::kStartNs, 100);
  EXPECT_EQ(run.started(first), 105);
  EXPECT_EQ(run.started(other), 110);
  EXPECT_EQ(run.started(second), 1105 + 30);
  EXPECT_EQ(run.queue(first), kNoQueue);
  EXPECT_EQ(run.now(), 2135);
}

// Two kernels of one stream, and one of another, captured as a graph on a device with one or two queues.
TEST(SimGraph, nodes_may_pass_through_queues) {
  const auto other_start = [](sim::GraphQueues queues, std::int64_t count) {
    auto profile = plain_profile(count);
    profile.graph_queues = queues;
    TimedStep step;
    const BufferId data = step.data();
    const CommandId first = step.spin_on(data, 0, 1000);
    const CommandId second = step.spin_on(data, 0, 1000);
    const CommandId other = step.spin(1, 400);
    const CommandId joined = step.spin_on(data, 1, 10);  // waits for the other branch
    const auto device = open_sim(profile);
    SimRun run(*device, step, {.mode = SubmitMode::graph});
    for (std::uint32_t i = 0; i < 3; ++i) {
      run.iterate();
      EXPECT_EQ(run.span(second, i).started_ns - run.span(first, i).ended_ns, 0);
      EXPECT_EQ(run.span(joined, i).started_ns - run.span(second, i).ended_ns, 0);
      EXPECT_EQ(run.span(other, i).started_ns - run.span(first, i).started_ns, run.started(other) - run.started(first));
    }
    EXPECT_EQ(run.queue(first) == kNoQueue, queues == sim::GraphQueues::none);
    if (queues == sim::GraphQueues::own) {
      EXPECT_GE(run.queue(first), count);
    }
    return run.started(other);
  };
  EXPECT_EQ(other_start(sim::GraphQueues::none, 1), 0);
  EXPECT_EQ(other_start(sim::GraphQueues::shared, 1), 1000);
  EXPECT_EQ(other_start(sim::GraphQueues::own, 1), 1000);
  EXPECT_EQ(other_start(sim::GraphQueues::shared, 2), 0);
  EXPECT_EQ(other_start(sim::GraphQueues::own, 2), 0);
}

TEST(SimGraph, queues_of_its_own_are_not_blocked_by_streams) {
  const auto waited = [](sim::GraphQueues queues) {
    auto profile = plain_profile(1);
    profile.graph_queues = queues;
    const auto device = open_sim(profile);
    TimedStep eager, captured;
    eager.spin(0, 5000);
    eager.spin(0, 5000);  // blocks the queue for 5 us
    const CommandId node = captured.spin(0, 100);
    SimRun busy(*device, eager), graph(*device, captured, {.mode = SubmitMode::graph});
    busy.session->begin_iteration();
    busy.session->submit(busy.ids);
    graph.iterate();
    busy.session->finish();
    return graph.started(node);
  };
  EXPECT_EQ(waited(sim::GraphQueues::shared), 5000);
  EXPECT_EQ(waited(sim::GraphQueues::own), 0);
  EXPECT_EQ(waited(sim::GraphQueues::none), 0);
}

TEST(SimSession, hold_ends_when_the_host_says_so) {
  auto profile = plain_profile(2);
  profile.timer_ns = 32;
  const auto device = open_sim(profile);
  TimedStep step;
  const auto hold = step.hold(0, 10'000'000);
  const CommandId behind = step.spin(0, 100);
  const auto stamp = step.stamp(2, 50, 2);
  const auto free = step.stamp(1, 50);
  SimRun run(*device, step);
  auto* const flag = reinterpret_cast<std::int32_t*>(run.session->host_memory(hold.flag).data());
  auto* const stuck = reinterpret_cast<std::int32_t*>(run.session->host_memory(stamp.moments).data());
  auto* const free_at = reinterpret_cast<std::int32_t*>(run.session->host_memory(free.moments).data());
  run.session->begin_iteration();
  run.session->submit(run.ids);
  run.session->pause(1'000'000);
  EXPECT_EQ(read_moment(stuck).started_ns, 0);                            // behind what is queued behind the hold
  EXPECT_EQ(read_moment(free_at).ended_ns, sim::Machine::kStartNs + 32);  // 50 on a timer of 32
  std::atomic_ref(*flag).store(1, std::memory_order_release);
  run.session->pause(1'000'000);
  EXPECT_EQ(run.ended(hold.command), 1'000'000);
  EXPECT_EQ(run.started(behind), 1'000'000);
  EXPECT_EQ(read_moment(stuck + 4).started_ns, sim::Machine::kStartNs + 1'000'000);
  run.session->finish();
  EXPECT_EQ(run.now(), 2'000'000);
}

TEST(SimSession, finish_runs_an_unset_hold_to_its_limit) {
  const auto device = open_sim(plain_profile());
  TimedStep step;
  const auto hold = step.hold(0, 5'000);
  SimRun run(*device, step);
  run.iterate();
  EXPECT_EQ(run.ended(hold.command), 5'000);
  EXPECT_EQ(run.now(), 5'000);
  // A flag that is set before the launch holds nobody.
  auto* const flag = reinterpret_cast<std::int32_t*>(run.session->host_memory(hold.flag).data());
  std::atomic_ref(*flag).store(1, std::memory_order_release);
  run.iterate();
  EXPECT_EQ(run.now(), 5'000);
  run.session->reset();
  run.iterate();
  EXPECT_EQ(run.now(), 10'000);
}

TEST(SimSession, sessions_share_the_queues_of_their_device) {
  const auto device = open_sim(plain_profile(1));
  TimedStep held, probe;
  const auto hold = held.hold(0, 1'000'000);
  held.spin(0, 10);
  const auto stamp = probe.stamp(0, 10);
  SimRun holder(*device, held), prober(*device, probe);
  holder.session->begin_iteration();
  holder.session->submit(holder.ids);
  prober.session->begin_iteration();
  prober.session->submit(prober.ids);
  prober.session->finish();  // only the hold's limit helps
  EXPECT_EQ(prober.started(stamp.command), 1'000'000);
  EXPECT_EQ(holder.ended(hold.command), 1'000'000);
  holder.session->finish();
}

TEST(SimSession, submitting_allocates_nothing_once_it_has_run) {
  auto profile = plain_profile(3, 2);
  profile.mapping = sim::Mapping::load_based;
  profile.host.launch_ns = 10;
  TimedStep step;
  const BufferId data = step.data();
  for (int i = 0; i < 200; ++i) step.spin_on(data, static_cast<StreamId>(i % 5), 100, 1);
  for (int i = 0; i < 200; ++i) step.spin(static_cast<StreamId>(i % 5), 100, 3);
  const auto device = open_sim(profile);
  SimRun run(*device, step);
  for (int i = 0; i < 3; ++i) run.iterate();
  run.session->begin_iteration();
  const std::uint64_t before = allocation_count();
  run.session->submit(run.ids);
  EXPECT_EQ(allocation_count() - before, 0u);
  run.session->finish();
}

TEST(SimSession, refuses_more_streams_and_memory_than_it_has) {
  auto profile = plain_profile();
  profile.max_streams = 2;
  profile.memory_bytes = 100;
  const auto device = open_sim(profile);
  TimedStep three, large;
  for (StreamId stream = 0; stream < 3; ++stream) three.spin(stream, 1);
  EXPECT_THROW(SimRun(*device, three), Error);
  large.spin(0, 1, 26);
  EXPECT_THROW(SimRun(*device, large), Error);
}

}  // namespace
}  // namespace weir
