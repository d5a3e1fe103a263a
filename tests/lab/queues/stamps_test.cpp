// Steps of probe kernels on the cpu device, and what is read from moments.
#include "lab/queues/stamps.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Stamps, MakespanAndConcurrencyComeFromMomentsThatHappened) {
  const std::vector<Moment> moments = {{100, 200}, {150, 250}, {200, 300}, {0, 0}, {400, 0}};
  EXPECT_EQ(makespan_ns(moments), 200);
  EXPECT_EQ(most_at_once(moments), 2);  // the third starts when the first ends
  EXPECT_EQ(makespan_ns({}), 0);
  EXPECT_EQ(most_at_once({}), 0);
}

TEST(Stamps, MomentsSinceAnEpochLongAgoKeepTheirNanoseconds) {
  const std::int64_t epoch = 1'763'000'000'000'000'000;
  const std::vector<Moment> moments = {{epoch + 1, epoch + 4}, {epoch + 2, epoch + 8}};
  EXPECT_EQ(makespan_ns(moments), 7);
}

TEST(Stamps, OverlappingMomentsAreOrderedOthersAreNot) {
  StampStep step(1, 4);
  step.hold({.stream = 0}, 0, 0, 4);
  step.stamp({.stream = 0}, 0, 1, 1, 2);
  step.stamp({.stream = 1}, 0, 2);
  step.stamp({.stream = 2}, 0, 3);
  const auto device = open_device("cpu", {.hardware_queues = 4, .workers = 4, .sim = {}});
  const StampSession session(*device, std::move(step), 3);
  EXPECT_EQ(session.step().predecessors(1).size(), 1u);
  EXPECT_EQ(session.step().predecessors(2).size(), 1u);  // of stamp 1, which had it from the hold
  EXPECT_EQ(session.step().predecessors(3).size(), 1u);
  EXPECT_EQ(session.step().predecessors(2)[0], 1u);
  EXPECT_EQ(session.step().predecessors(3)[0], 0u);
}

TEST(Stamps, AHeldStreamWaitsForItsFlagAndOthersDoNot) {
  StampStep step(1, 3);
  const CommandId hold = step.hold({.stream = 0}, 0, 0);
  const CommandId behind = step.stamp({.stream = 0}, 0, 1);
  const CommandId beside = step.stamp({.stream = 1}, 0, 2);
  const auto device = open_device("cpu", {.hardware_queues = 2, .workers = 4, .sim = {}});
  StampSession session(*device, std::move(step), 2);
  for (int i = 0; i < 3; ++i) {
    session.begin();
    session.submit(hold);
    session.submit(behind);
    session.submit(beside);
    EXPECT_TRUE(session.await_started(2));
    EXPECT_EQ(session.moment(1).started_ns, 0);
    session.release(0);
    session.finish();
    EXPECT_GE(session.moment(1).started_ns, session.moment(0).ended_ns);
  }
}

TEST(Stamps, BlocksAtOnceAreTheWorkers) {
  const auto device = open_device("cpu", {.hardware_queues = 2, .workers = 6, .sim = {}});
  const ConcurrentBlocks room = count_concurrent_blocks(*device);
  EXPECT_GE(room.blocks, 2);
  EXPECT_LE(room.blocks, 6);
  EXPECT_FALSE(room.is_more);
}

}  // namespace
}  // namespace weir
