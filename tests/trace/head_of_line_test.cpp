// Timelines whose waits can be worked out by hand, and one of a simulated device for which the same holds.
#include "trace/analyse/head_of_line.h"

#include <gtest/gtest.h>

#include <map>

#include "device/sim/sim.h"
#include "step/step.h"

namespace weir {
namespace {

struct Times {
  std::int64_t submitted, started, ended;
  std::int64_t launched = kNoTime;
};

// Collects spans; commands are numbered in the order in which they are added.
class HandMade {
 public:
  std::uint32_t add(std::uint16_t stream, std::int32_t queue, const Times& times, std::uint32_t iteration = 0) {
    Span span;
    span.command = iteration == 0 ? count_++ : repeated_++;
    span.iteration = iteration;
    span.stream = stream;
    span.queue = queue;
    span.submitted_ns = times.submitted;
    span.launched_ns = times.launched;
    span.started_ns = times.started;
    span.ended_ns = times.ended;
    timeline.spans.push_back(span);
    return span.command;
  }
  void order(std::uint32_t before, std::uint32_t after) { before_[after].push_back(before); }
  HeadOfLine found() const {
    return head_of_line(timeline, [this](std::uint32_t command) -> std::span<const std::uint32_t> {
      const auto found = before_.find(command);
      if (found == before_.end()) return {};
      return found->second;
    });
  }

  Timeline timeline;

 private:
  std::uint32_t count_ = 0, repeated_ = 0;
  std::map<std::uint32_t, std::vector<std::uint32_t>> before_;
};

// Stream 0 has two kernels of 100; the second blocks the queue until the first has ended, and with it stream 1.
TEST(HeadOfLine, TwoStreamsOnOneQueue) {
  HandMade made;
  made.add(0, 0, {0, 0, 100});
  const std::uint32_t second = made.add(0, 0, {1, 100, 200});
  made.add(1, 0, {2, 100, 150});
  const HeadOfLine found = made.found();
  EXPECT_EQ(found.reason, "");
  EXPECT_DOUBLE_EQ(found.waited_ns, 98);  // from 2, when it was ready, to 100
  EXPECT_DOUBLE_EQ(found.longest_ns, 98);
  EXPECT_EQ(found.commands, 1u);
  EXPECT_EQ(found.total, 3u);
  ASSERT_EQ(found.blockers.size(), 1u);
  EXPECT_EQ(found.blockers[0].command, second);
  EXPECT_EQ(found.blockers[0].stream, 0);
  EXPECT_DOUBLE_EQ(found.blockers[0].caused_ns, 98);
}

TEST(HeadOfLine, OnAnotherQueueNobodyIsInFront) {
  HandMade made;
  made.add(0, 0, {0, 0, 100});
  made.add(0, 0, {1, 100, 200});
  made.add(1, 1, {2, 100, 150});  // late for a reason of its own
  const HeadOfLine found = made.found();
  EXPECT_EQ(found.reason, "");
  EXPECT_DOUBLE_EQ(found.waited_ns, 0);
  EXPECT_EQ(found.commands, 0u);
  EXPECT_TRUE(found.blockers.empty());
}

TEST(HeadOfLine, WaitingForTheOwnPredecessorDoesNotCount) {
  HandMade made;
  const std::uint32_t first = made.add(0, 0, {0, 0, 100});
  const std::uint32_t second = made.add(0, 0, {1, 100, 200});
  made.order(first, second);
  EXPECT_DOUBLE_EQ(made.found().waited_ns, 0);
  // Another stream's command that waits for `second` anyway loses nothing behind it.
  const std::uint32_t third = made.add(1, 0, {2, 200, 250});
  made.order(second, third);
  EXPECT_DOUBLE_EQ(made.found().waited_ns, 0);
}

TEST(HeadOfLine, OnlyTheTimeAfterItWasReadyCounts) {
  HandMade made;
  made.add(0, 0, {0, 0, 100});
  made.add(0, 0, {1, 100, 200});
  const std::uint32_t elsewhere = made.add(2, 1, {2, 2, 60});
  const std::uint32_t waiting = made.add(1, 0, {3, 100, 150});
  made.order(elsewhere, waiting);
  EXPECT_DOUBLE_EQ(made.found().waited_ns, 40);  // ready at 60, let go at 100
}

// One behind the other: stream 2 sits behind stream 1's second, which leaves later than stream 0's.
TEST(HeadOfLine, ThreeStreamsOnOneQueue) {
  HandMade made;
  made.add(0, 0, {0, 0, 100});
  const std::uint32_t first = made.add(0, 0, {0, 100, 200});
  made.add(1, 0, {0, 100, 250});
  const std::uint32_t second = made.add(1, 0, {0, 250, 400});
  made.add(2, 0, {0, 250, 300});
  const HeadOfLine found = made.found();
  EXPECT_DOUBLE_EQ(found.waited_ns, 100 + 250);  // the second of stream 1 waits for its own stream alone
  EXPECT_DOUBLE_EQ(found.longest_ns, 250);
  EXPECT_EQ(found.commands, 2u);
  ASSERT_EQ(found.blockers.size(), 2u);
  EXPECT_EQ(found.blockers[0].command, second);  // most first
  EXPECT_DOUBLE_EQ(found.blockers[0].caused_ns, 250);
  EXPECT_EQ(found.blockers[1].command, first);
  EXPECT_DOUBLE_EQ(found.blockers[1].caused_ns, 100);
}

// A command may leave its queue long before it starts (there is no room on the device): who is behind it then waits for
// room, not for the queue.
TEST(HeadOfLine, LeavingTheQueueCountsWhereItIsKnown) {
  HandMade made;
  made.add(0, 0, {0, 50, 100, 10});
  made.add(1, 0, {0, 90, 140, 10});
  EXPECT_DOUBLE_EQ(made.found().waited_ns, 10);
  for (Span& span : made.timeline.spans) span.launched_ns = kNoTime;
  EXPECT_DOUBLE_EQ(made.found().waited_ns, 50);
}

TEST(HeadOfLine, IsTheMeanOverIterations) {
  HandMade made;
  made.add(0, 0, {0, 0, 100});
  made.add(0, 0, {0, 100, 200});
  made.add(1, 0, {0, 100, 150});
  made.add(0, 0, {1000, 1000, 1100}, 1);
  made.add(0, 0, {1000, 1100, 1200}, 1);
  made.add(1, 0, {1100, 1100, 1150}, 1);  // came when the queue was free again
  const HeadOfLine found = made.found();
  EXPECT_DOUBLE_EQ(found.waited_ns, 50);
  EXPECT_DOUBLE_EQ(found.longest_ns, 100);
  EXPECT_EQ(found.total, 3u);
}

TEST(HeadOfLine, SaysWhyThereIsNothing) {
  HandMade made;
  made.timeline.source = "a clock that knows no queues";
  EXPECT_NE(made.found().reason.find("no timeline"), std::string::npos);
  made.add(0, kNoQueue, {0, 0, 100});
  const HeadOfLine found = made.found();
  EXPECT_NE(found.reason.find("does not know hardware queues: a clock that"), std::string::npos) << found.reason;
  EXPECT_EQ(found.total, 0u);
}

// `depth` kernels of 1 ms on each stream, issued stream by stream, on a device where nothing costs anything.
struct DepthFirst {
  double step_ns = 0;
  HeadOfLine found;
};
DepthFirst run_depth_first(int streams, int depth, std::int64_t queues) {
  StepBuilder builder(1);
  for (int stream = 0; stream < streams; ++stream) {
    for (int k = 0; k < depth; ++k) {
      const BufferId data = builder.output(ElementType::f32, 1);
      builder.launch("spin", {.stream = static_cast<StreamId>(stream)}, {.dims = {1'000'000, 1}, .scalars = {}},
                     {{data}});
    }
  }
  const Step step = std::move(builder).seal(streams);
  Placement placement{"natural", streams, {}};
  std::vector<CommandId> ids;
  for (const Command& command : step.commands()) {
    placement.stream_of.push_back(command.stream);
    ids.push_back(static_cast<CommandId>(ids.size()));
  }
  sim::SimProfile profile;
  profile.queues = queues;
  profile.host.clock_ns = 0;
  const auto device = open_sim(profile);
  SessionOptions options;
  options.is_traced = true;
  options.trace_iterations = 1;
  const auto session = device->prepare(step, placement, options);
  session->begin_iteration();
  const std::int64_t begun = session->now_ns();
  session->submit(ids);
  session->finish();
  DepthFirst run;
  run.step_ns = static_cast<double>(session->now_ns() - begun);
  run.found = head_of_line(session->timeline(), [&](CommandId id) { return step.predecessors(id); });
  return run;
}

// S streams in turn on one queue, n kernels each of length t: the first of stream s starts when the last of the stream
// before it does, at s (n - 1) t. It was ready at once; its others wait only for their own stream.
TEST(HeadOfLine, DepthFirstIssueByHand) {
  const DepthFirst shared = run_depth_first(4, 3, 1);
  EXPECT_DOUBLE_EQ(shared.step_ns, (4 * 2 + 1) * 1e6);
  EXPECT_DOUBLE_EQ(shared.found.waited_ns, (2 + 4 + 6) * 1e6);
  EXPECT_DOUBLE_EQ(shared.found.longest_ns, 6e6);
  EXPECT_EQ(shared.found.commands, 3u);
  EXPECT_EQ(shared.found.total, 12u);
  ASSERT_EQ(shared.found.blockers.size(), 3u);
  EXPECT_EQ(shared.found.blockers[0].command, 8u);  // the last of stream 2, which stream 3 sits behind

  // Streams 0 and 2 share queue 0, streams 1 and 3 queue 1.
  const DepthFirst two = run_depth_first(4, 3, 2);
  EXPECT_DOUBLE_EQ(two.step_ns, (2 * 2 + 1) * 1e6);
  EXPECT_DOUBLE_EQ(two.found.waited_ns, (2 + 2) * 1e6);
  EXPECT_EQ(two.found.commands, 2u);

  const DepthFirst alone = run_depth_first(4, 3, 4);
  EXPECT_DOUBLE_EQ(alone.step_ns, 3e6);
  EXPECT_DOUBLE_EQ(alone.found.waited_ns, 0);
  EXPECT_EQ(alone.found.commands, 0u);
}

}  // namespace
}  // namespace weir
