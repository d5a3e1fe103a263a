// Hundreds of random steps on random devices: whatever the settings, order, edges, capacity and queues are respected,
// and the same seed gives the same times, by one thread or by several.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "device/sim_testing.h"
#include "kernel/moment.h"
#include "submit/submitter.h"

namespace weir {
namespace {

sim::SimProfile random_profile(std::mt19937& random) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const std::int64_t queues = 1 + below(6), multiprocessors = 1 + below(6);
  sim::SimProfile profile = plain_profile(queues, multiprocessors);
  profile.slots_per_multiprocessor = 1 + below(4);
  profile.mapping = static_cast<sim::Mapping>(below(5));
  for (int i = 0; i < 5; ++i) profile.map.push_back(below(profile.queues));
  profile.barrier = std::max<std::int64_t>(0, below(6) - 3);
  profile.graph_queues = static_cast<sim::GraphQueues>(below(3));
  profile.queue_depth = 1 + below(6);
  profile.resident_kernels = 1 + below(5);
  profile.priorities = static_cast<sim::Priorities>(below(4));
  profile.copy_engines.to_device = 1 + below(2);
  profile.host_threads = 1 + below(2);
  profile.rates.to_device_bytes = profile.rates.to_host_bytes = 1e9;
  profile.jitter = below(2) == 0 ? 0 : 0.2;
  profile.foreign_load = below(5) == 0 ? 0.3 : 0;
  profile.foreign_slice_ns = 3000;
  for (std::int64_t* const cost :
       {&profile.host.launch_ns, &profile.host.record_ns, &profile.device.doorbell_ns, &profile.device.launch_ns,
        &profile.device.stream_gap_ns, &profile.device.event_gap_ns, &profile.device.switch_ns,
        &profile.device.switch_per_doubling_ns, &profile.device.graph_gap_ns, &profile.device.graph_node_ns,
        &profile.device.preempt_save_ns, &profile.device.preempt_restore_ns})
    *cost = below(3) == 0 ? 0 : below(300);
  profile.seed = below(1000);
  return profile;
}

Step random_sim_step(std::mt19937& random, int streams) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  StepBuilder builder(1);
  std::vector<BufferId> device, host;
  for (int i = 0; i < 6; ++i) {
    device.push_back(builder.constant(ElementType::f32, 16, 1));
    host.push_back(builder.host(ElementType::f32, 16, Init::constant));
  }
  const std::size_t count = static_cast<std::size_t>(streams) + below(60);
  for (std::size_t i = 0; i < count; ++i) {
    const auto stream =
        static_cast<StreamId>(i < static_cast<std::size_t>(streams) ? i : below(static_cast<std::uint64_t>(streams)));
    const Lane lane{.stream = stream, .role = 0, .priority = static_cast<std::int8_t>(below(3))};
    const BufferId on_device = device[below(6)], on_host = host[below(6)];
    const auto blocks = static_cast<std::int64_t>(1 + below(16));
    switch (below(6)) {
      case 0:
        builder.copy(lane, {on_host}, {on_device});
        break;
      case 1:
        builder.copy(lane, {on_device}, {on_host});
        break;
      case 2:
        builder.launch_on_host("gelu", lane, {.dims = {16}, .scalars = {}}, {{on_host}, {host[below(6)]}});
        break;
      default:
        builder.launch("spin", lane, {.dims = {static_cast<std::int64_t>(below(2000)), blocks}, .scalars = {}},
                       {{on_device, 0, static_cast<std::uint64_t>(blocks)}});
    }
  }
  return std::move(builder).seal(streams);
}

struct Outcome {
  std::vector<Span> spans;
  std::int64_t now_ns = 0;
};

Outcome run_step(const sim::SimProfile& profile, const Step& step, const SessionOptions& asked, int threads) {
  Placement placement{"natural", step.stream_count(), {}};
  for (const Command& command : step.commands()) placement.stream_of.push_back(command.stream);
  const auto device = open_sim(profile);
  SessionOptions options = asked;
  options.is_traced = true;
  options.trace_iterations = 3;
  options.host_threads = std::max(1, threads);
  const auto session = device->prepare(step, placement, options);
  const auto submitter =
      threads == 0 ? inline_submitter(step, *session) : threads_submitter(threads, step, placement, *session);
  for (int i = 0; i < 3; ++i) {
    session->begin_iteration();
    submitter->submit_step();
    if (!options.is_pipelined) session->finish();
  }
  session->finish();
  return {session->timeline().spans, session->now_ns()};
}

void check(const sim::SimProfile& profile, const Step& step, const Outcome& outcome, bool is_graph, bool is_inline) {
  const std::size_t count = step.commands().size();
  ASSERT_EQ(outcome.spans.size(), 3 * count);
  std::vector<const Span*> spans(3 * count);
  for (const Span& span : outcome.spans) spans[span.iteration * count + span.command] = &span;
  std::map<int, std::int64_t> last_of_stream;
  std::map<int, std::int64_t> last_start_of_queue;
  std::vector<std::pair<std::int64_t, int>> kernels, copies;  // resident, by moment
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = *spans[i];
    const Command& command = step.commands()[span.command];
    ASSERT_GE(span.started_ns, span.submitted_ns);
    ASSERT_GE(span.ended_ns, span.started_ns);
    // A graph's nodes follow the order of their streams too.
    auto& last = last_of_stream.try_emplace(span.stream, INT64_MIN).first->second;
    ASSERT_GE(span.started_ns, last);
    last = span.ended_ns;
    for (const CommandId before : step.predecessors(span.command))
      ASSERT_GE(span.started_ns, spans[span.iteration * count + before]->ended_ns);
    if (command.kind == CommandKind::kernel) {
      kernels.push_back({span.started_ns, 1});
      kernels.push_back({span.ended_ns, -1});
    } else if (command.kind == CommandKind::copy &&
               step.buffers()[step.accesses(span.command)[0].buffer].place == Place::host) {
      copies.push_back({span.started_ns, 1});
      copies.push_back({span.ended_ns, -1});
    }
    if (is_graph && profile.graph_queues == sim::GraphQueues::none) {
      ASSERT_EQ(span.queue, kNoQueue);
      continue;
    }
    const bool is_own = is_graph && profile.graph_queues == sim::GraphQueues::own;
    ASSERT_GE(span.queue, is_own ? profile.queues : 0);
    ASSERT_LT(span.queue, is_own ? 2 * profile.queues : profile.queues);
    // Launches leave a queue in the order in which they came; with enough room they start then.
    const bool has_room =
        profile.multiprocessors * profile.slots_per_multiprocessor >= 16 * 5 && profile.foreign_load == 0;
    if (is_inline && has_room && command.kind == CommandKind::kernel) {
      auto& start = last_start_of_queue.try_emplace(span.queue, INT64_MIN).first->second;
      ASSERT_GE(span.started_ns, start);
      start = span.started_ns;
    }
  }
  const auto most = [](std::vector<std::pair<std::int64_t, int>>& changes) {
    std::sort(changes.begin(), changes.end());  // ends first
    int running = 0, highest = 0;
    for (const auto& change : changes) highest = std::max(highest, running += change.second);
    return highest;
  };
  ASSERT_LE(most(kernels), profile.resident_kernels);
  ASSERT_LE(most(copies), profile.copy_engines.to_device);
}

bool are_equal(const Outcome& a, const Outcome& b) {
  return a.now_ns == b.now_ns && a.spans.size() == b.spans.size() &&
         std::equal(a.spans.begin(), a.spans.end(), b.spans.begin(), [](const Span& x, const Span& y) {
           return x.command == y.command && x.started_ns == y.started_ns && x.ended_ns == y.ended_ns &&
                  x.submitted_ns == y.submitted_ns && x.queue == y.queue;
         });
}

TEST(SimRandom, order_edges_and_limits_hold) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const auto profile = random_profile(random);
    const Step step = random_sim_step(random, 1 + static_cast<int>(random() % 8));
    SessionOptions options;
    options.is_pipelined = round % 3 == 0;
    const Outcome eager = run_step(profile, step, options, 0);
    check(profile, step, eager, false, true);
    EXPECT_TRUE(are_equal(eager, run_step(profile, step, options, 0)));
    options.is_pipelined = false;
    options.mode = SubmitMode::graph;
    check(profile, step, run_step(profile, step, options, 0), true, true);
    if (HasFatalFailure()) return;
  }
}

TEST(SimRandom, no_more_blocks_run_than_there_are_slots) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    auto profile = random_profile(random);
    profile.foreign_load = 0;
    // Blocks that were set aside look as if they ran.
    if (profile.priorities == sim::Priorities::full) profile.priorities = sim::Priorities::blocks;
    TimedStep timed;
    std::vector<TimedStep::Stamp> stamps;
    std::vector<std::int64_t> blocks;
    for (int i = 0; i < 20; ++i) {
      blocks.push_back(1 + static_cast<std::int64_t>(random() % 40));
      stamps.push_back(
          timed.stamp(static_cast<StreamId>(i % 5), 1 + static_cast<std::int64_t>(random() % 500), blocks.back()));
    }
    const auto device = open_sim(profile);
    SimRun run(*device, timed);
    run.iterate();
    std::vector<std::pair<std::int64_t, int>> changes;
    for (std::size_t i = 0; i < stamps.size(); ++i) {
      auto* const at = reinterpret_cast<std::int32_t*>(run.session->host_memory(stamps[i].moments).data());
      for (std::int64_t block = 0; block < blocks[i]; ++block) {
        const Moment moment = read_moment(at + 4 * block);
        ASSERT_EQ(moment.ended_ns - moment.started_ns, run.step.commands()[stamps[i].command].shape.dims[0]);
        changes.push_back({moment.started_ns, 1});
        changes.push_back({moment.ended_ns, -1});
      }
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t running = 0;
    for (const auto& change : changes)
      ASSERT_LE(running += change.second, profile.multiprocessors * profile.slots_per_multiprocessor);
  }
}

TEST(SimRandom, real_threads_change_no_number) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    const auto profile = random_profile(random);
    const int streams = 2 + static_cast<int>(random() % 7);
    const Step step = random_sim_step(random, streams);
    const int threads = 2 + static_cast<int>(random() % static_cast<unsigned>(streams - 1));
    const Outcome first = run_step(profile, step, {}, threads);
    check(profile, step, first, false, false);
    for (int again = 0; again < 2; ++again) EXPECT_TRUE(are_equal(first, run_step(profile, step, {}, threads)));
    if (HasFatalFailure()) return;
  }
}

TEST(SimRandom, threads_share_the_cost_of_submitting) {
  auto profile = plain_profile(8);
  profile.host.launch_ns = 1000;
  TimedStep timed;
  for (int i = 0; i < 40; ++i) timed.spin(static_cast<StreamId>(i % 4), 1);
  const Step step = timed.seal();
  EXPECT_EQ(run_step(profile, step, {}, 0).now_ns - sim::Machine::kStartNs, 3 * 40'001);
  EXPECT_EQ(run_step(profile, step, {}, 4).now_ns - sim::Machine::kStartNs, 3 * 10'001);
}

}  // namespace
}  // namespace weir
