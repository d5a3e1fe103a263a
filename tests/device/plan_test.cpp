// What a plan waits for, checked by a queue that only writes down what it is told.
#include "device/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "base/error.h"
#include "lab/conformance/steps.h"

namespace weir {
namespace {

using conformance::natural;

// One entry per call: "launch 3 on 1", "wait 0 on 1", ...
struct LoggingQueue {
  std::vector<std::string> log;
  void launch(CommandId command, StreamId stream) noexcept { add("launch", command, stream); }
  void record(EventId event, StreamId stream) noexcept { add("record", event, stream); }
  void wait(EventId event, StreamId stream) noexcept { add("wait", event, stream); }
  void mark_first(StreamId stream) noexcept { log.push_back("first of " + std::to_string(stream)); }
  void mark_last(StreamId stream) noexcept { log.push_back("last of " + std::to_string(stream)); }

 private:
  void add(const char* verb, std::uint32_t subject, StreamId stream) {
    log.push_back(std::string(verb) + " " + std::to_string(subject) + " on " + std::to_string(stream));
  }
};
static_assert(CommandQueue<LoggingQueue>);

// Commands that overwrite one element of a shared buffer: those that name the same element are ordered.
class Steps {
 public:
  Steps() : builder_(1), data_(builder_.output(ElementType::f32, 64)) {}
  Steps& fill(StreamId stream, std::uint64_t element, std::uint64_t count = 1) {
    builder_.launch("fill", {.stream = stream}, {.dims = {static_cast<std::int64_t>(count)}},
                    {{data_, element, count}});
    streams_ = std::max(streams_, stream + 1);
    return *this;
  }
  Step seal() { return std::move(builder_).seal(streams_); }

 private:
  StepBuilder builder_;
  BufferId data_;
  int streams_ = 0;
};

std::vector<std::string> walked(const Step& step, const Placement& placement, bool is_pipelined) {
  std::vector<CommandId> ids(step.commands().size());
  std::iota(ids.begin(), ids.end(), 0);
  LoggingQueue queue;
  walk(make_plan(step, placement, is_pipelined), ids, queue);
  return queue.log;
}

using Log = std::vector<std::string>;

TEST(StepPlan, one_stream_needs_no_events) {
  const Step step = Steps().fill(0, 0).fill(0, 0).fill(0, 0).seal();
  EXPECT_EQ(walked(step, natural(step), true),
            (Log{"first of 0", "launch 0 on 0", "launch 1 on 0", "launch 2 on 0", "last of 0"}));
}

TEST(StepPlan, an_edge_across_streams_becomes_an_event) {
  const Step step = Steps().fill(0, 0).fill(1, 0).seal();
  EXPECT_EQ(walked(step, natural(step), false), (Log{"first of 0", "launch 0 on 0", "record 0 on 0", "last of 0",
                                                     "first of 1", "wait 0 on 1", "launch 1 on 1", "last of 1"}));
}

TEST(StepPlan, independent_streams_are_not_tied) {
  const Step step = Steps().fill(0, 0).fill(1, 1).seal();
  for (const std::string& entry : walked(step, natural(step), true)) EXPECT_FALSE(entry.starts_with("wait")) << entry;
}

TEST(StepPlan, only_the_last_of_a_stream_is_waited_for) {
  // Command 2 follows 0 and 1, but 1 comes after 0 on their stream.
  const Step step = Steps().fill(0, 0).fill(0, 1).fill(1, 0, 2).seal();
  const StepPlan plan = make_plan(step, natural(step), false);
  EXPECT_EQ(plan.waits.size(), 1u);
  EXPECT_EQ(plan.hops[0].flags & StepPlan::kRecords, 0);
  EXPECT_NE(plan.hops[1].flags & StepPlan::kRecords, 0);
}

TEST(StepPlan, what_was_waited_for_is_known_later) {
  // Command 2 on stream 1 follows 0, as 1 did before it on the same stream.
  const Step step = Steps().fill(0, 0, 2).fill(1, 0).fill(1, 1).seal();
  const StepPlan plan = make_plan(step, natural(step), false);
  EXPECT_EQ(plan.hops[1].wait_count, 1u);
  EXPECT_EQ(plan.hops[2].wait_count, 0u);
}

TEST(StepPlan, a_wait_that_another_implies_is_left_out) {
  // 0 on stream 0, 1 on stream 1 after 0, 2 on stream 2 after both: 1 has waited for 0 already.
  const Step step = Steps().fill(0, 0, 2).fill(1, 0).fill(2, 0, 2).seal();
  const StepPlan plan = make_plan(step, natural(step), false);
  EXPECT_EQ(plan.hops[2].wait_count, 1u);
  EXPECT_EQ(plan.waits[plan.hops[2].first_wait], plan.hops[1].event);
}

TEST(StepPlan, graphs_wait_for_nothing_of_an_earlier_one) {
  StepBuilder builder(1);
  const BufferId data = builder.output(ElementType::f32, 4);
  const auto fill = [&](StreamId stream, std::uint64_t element) {
    builder.launch("fill", {.stream = stream}, {.dims = {1}}, {{data, element, 1}});
  };
  fill(0, 0);
  fill(1, 1);
  builder.cut();
  fill(1, 0);  // follows command 0, which is in the graph before
  fill(0, 0);  // follows command 2 in its own
  const Step step = std::move(builder).seal(2);
  LoggingQueue queue;
  const CommandId ids[] = {0, 1, 2, 3};
  walk(make_graph_plan(step, natural(step)), ids, queue);
  EXPECT_EQ(queue.log, (Log{"first of 0", "launch 0 on 0", "last of 0", "first of 1", "launch 1 on 1", "last of 1",
                            "first of 1", "launch 2 on 1", "record 0 on 1", "last of 1", "first of 0", "wait 0 on 0",
                            "launch 3 on 0", "last of 0"}));
}

TEST(StepPlan, one_event_serves_all_who_wait) {
  StepBuilder builder(1);
  const BufferId shared = builder.output(ElementType::f32, 1);
  builder.launch("fill", {.stream = 0}, {.dims = {1}}, {{shared}});
  for (StreamId stream = 1; stream < 4; ++stream) {
    const BufferId own = builder.output(ElementType::f32, 1);
    builder.launch("copy", {.stream = stream}, {.dims = {1}}, {{shared}, {own}});
  }
  const Step step = std::move(builder).seal(4);
  const StepPlan plan = make_plan(step, natural(step), false);
  EXPECT_EQ(plan.event_count, 1u);
  EXPECT_EQ(plan.waits, (std::vector<EventId>{0, 0, 0}));
}

TEST(StepPlan, pipelined_iterations_wait_for_the_one_before) {
  const Step step = Steps().fill(0, 0).fill(1, 0).seal();
  const StepPlan alone = make_plan(step, natural(step), false);
  const StepPlan pipelined = make_plan(step, natural(step), true);
  EXPECT_EQ(alone.hops[0].wait_count, 0u);
  ASSERT_EQ(pipelined.hops[0].wait_count, 1u);
  EXPECT_NE(pipelined.hops[1].flags & StepPlan::kRecords, 0);
  EXPECT_EQ(pipelined.waits[pipelined.hops[0].first_wait], pipelined.hops[1].event);
}

TEST(StepPlan, rejects_foreign_placements) {
  const Step step = Steps().fill(0, 0).fill(1, 0).seal();
  EXPECT_THROW(make_plan(step, {"short", 2, {0}}, false), Error);
  EXPECT_THROW(make_plan(step, {"wild", 2, {0, 2}}, false), Error);
}

// Which commands have certainly ended when each command starts, by stream order and by the plan's events alone.
std::vector<std::set<CommandId>> implied(const StepPlan& plan, int iterations) {
  const auto count = static_cast<CommandId>(plan.hops.size());
  std::vector<std::set<CommandId>> before(count * static_cast<std::size_t>(iterations));
  std::vector<CommandId> last(static_cast<std::size_t>(plan.stream_count), UINT32_MAX);
  std::vector<CommandId> recorded(plan.event_count, UINT32_MAX);
  for (CommandId number = 0; number < before.size(); ++number) {
    const StepPlan::Hop& hop = plan.hops[number % count];
    const auto follow = [&](CommandId earlier) {
      if (earlier == UINT32_MAX) return;
      before[number].insert(earlier);
      before[number].insert(before[earlier].begin(), before[earlier].end());
    };
    follow(last[hop.stream]);
    for (std::uint32_t i = 0; i < hop.wait_count; ++i) follow(recorded[plan.waits[hop.first_wait + i]]);
    last[hop.stream] = number;
    if (hop.flags & StepPlan::kRecords) recorded[hop.event] = number;
  }
  return before;
}

TEST(StepPlan, random_steps_are_ordered_and_waits_within_an_iteration_are_needed) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int streams = 1 + static_cast<int>(random() % 5);
    Steps steps;
    const int count = streams + static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      const int stream = i < streams ? i : static_cast<int>(random() % static_cast<unsigned>(streams));
      const auto begin = random() % 8, size = 1 + random() % 4;
      steps.fill(static_cast<StreamId>(stream), begin, size);
    }
    const Step step = steps.seal();
    const auto total = static_cast<CommandId>(step.commands().size());
    const StepPlan plan = make_plan(step, natural(step), true);
    const auto before = implied(plan, 3);
    for (CommandId number = 0; number < before.size(); ++number) {
      const CommandId id = number % total, start = number - id;
      for (const CommandId earlier : step.predecessors(id)) ASSERT_TRUE(before[number].contains(start + earlier));
      if (start == 0) continue;
      for (const CommandId earlier : step.carried(id)) ASSERT_TRUE(before[number].contains(start - total + earlier));
    }

    const StepPlan single = make_plan(step, natural(step), false);
    for (CommandId id = 0; id < total; ++id) {
      for (std::uint32_t i = 0; i < single.hops[id].wait_count; ++i) {
        StepPlan without = single;
        // Aims the wait at an event that nobody records: no wait at all.
        without.waits[single.hops[id].first_wait + i] = without.event_count;
        ++without.event_count;
        const auto weaker = implied(without, 1);
        const auto needed = step.predecessors(id);
        EXPECT_FALSE(
            std::all_of(needed.begin(), needed.end(), [&](CommandId earlier) { return weaker[id].contains(earlier); }))
            << "round " << round << ": command " << id << " has a wait that it does not need";
      }
    }
  }
}

}  // namespace
}  // namespace weir
