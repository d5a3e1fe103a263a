#include "submit/submitter.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/chain.h"
#include "submit/order_session.h"
#include "submit/placement.h"

namespace weir {
namespace {

TEST(Submitters, HoldCommandsBackUntilTheirPredecessorsAreSubmitted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Step step = random_step(seed, 5);
    for (const PlacementPolicy& policy : placement_policies()) {
      const Placement placement = policy.place(step);
      for (const char* way : {"inline", "graph", "threads:1", "threads:2", "threads:3", "threads:5"}) {
        OrderSession session(step, placement);
        const auto submitter = make_submitter(parse_submit(way, 5), step, placement, session);
        for (int iteration = 0; iteration < 10; ++iteration) {
          session.begin_iteration();
          submitter->submit_step();
          ASSERT_TRUE(session.all_arrived()) << way;
        }
        EXPECT_EQ(session.too_early(), 0) << way << " " << policy.name << " seed " << seed;
        EXPECT_EQ(session.out_of_order(), 0) << way << " " << policy.name << " seed " << seed;
        EXPECT_EQ(session.repeated(), 0) << way;
      }
    }
  }
}

TEST(Submitters, ThreadsWakeAfterAPause) {
  const Step step = random_step(1, 4);
  const Placement placement = place(step, "natural");
  OrderSession session(step, placement);
  const auto submitter = threads_submitter(4, step, placement, session);
  for (int i = 0; i < 3; ++i) {
    session.begin_iteration();
    submitter->submit_step();
    EXPECT_TRUE(session.all_arrived());
    timespec pause{0, 30'000'000};  // long enough for the threads to park
    nanosleep(&pause, nullptr);
  }
}

TEST(SubmitChoices, AreReadFromText) {
  EXPECT_EQ(parse_submit("inline", 8).threads, 0);
  EXPECT_EQ(parse_submit("graph", 8).mode, SubmitMode::graph);
  EXPECT_EQ(parse_submit("threads:4", 8).name, "threads:4");
  EXPECT_EQ(parse_submit("threads:4", 2).threads, 2);
  EXPECT_GE(parse_submit("threads", 8).threads, 1);
  for (const char* bad : {"",
                          "thread",
                          "threads:",
                          "threads:0",
                          "threads:x",
                          "threads:129",
                          "graph:2",
                          "channel:",
                          "channel:4",
                          "channel:pigeon",
                          "channel:mpsc:",
                          "channel:mpsc:0",
                          "channel:mpsc:129",
                          "channel:mpsc:x",
                          "channel:mpsc:4x",
                          "channel:mpsc:4x0",
                          "channel:mpsc:4x2x2",
                          "channel:mpsc:4:2",
                          "channel:spsc:2",
                          "channel:graph"})
    EXPECT_THROW(parse_submit(bad, 8), Error) << bad;
}

TEST(SubmitChoices, NameChannelsWithAllTheirCounts) {
  const auto name = [](const char* text, int streams) { return parse_submit(text, streams).name; };
  EXPECT_EQ(name("channel", 8), "channel:mpsc:4");
  EXPECT_EQ(name("channel:lanes", 3), "channel:lanes:3");
  EXPECT_EQ(name("channel:mpsc:6", 8), "channel:mpsc:6");
  EXPECT_EQ(name("channel:mpsc:6", 2), "channel:mpsc:2");
  EXPECT_EQ(name("channel:spsc", 8), "channel:spsc:1");
  EXPECT_EQ(name("channel:mpsc:4x2", 8), "channel:mpsc:4x2");
  EXPECT_EQ(name("channel:mpsc:4x1", 8), "channel:mpsc:4");
  EXPECT_EQ(name("channel:mpsc:4x8", 2), "channel:mpsc:2x2");
  for (const char* text : {"channel", "channel:mpsc:3x2", "channel:spsc", "threads:3", "inline", "graph"}) {
    const SubmitChoice once = parse_submit(text, 8);
    EXPECT_EQ(parse_submit(once.name, 8).name, once.name) << "a name must mean itself";
  }
  EXPECT_EQ(parse_submit("channel", 8).host_threads(), 1);
  EXPECT_EQ(parse_submit("channel:mpsc:4x3", 8).host_threads(), 3);
  EXPECT_EQ(parse_submit("threads:3", 8).host_threads(), 3);
  EXPECT_EQ(parse_submit("inline", 8).host_threads(), 1);
}

TEST(SubmitChoices, KeepTheirTextUntilTheStreamsAreKnown) {
  for (const char* text : {"inline", "graph", "threads", "threads:4", "channel", "channel:mpsc:4x2", "scheduled:fifo"})
    EXPECT_EQ(parse_submit(text).name, text);
  EXPECT_EQ(SubmitChoice().name, "inline");
  const SubmitChoice fitted = parse_submit("channel:mpsc:4x3").fitted_to(2);
  EXPECT_EQ(fitted.name, "channel:mpsc:2x2");
  EXPECT_EQ(fitted.fitted_to(8).name, fitted.name) << "what was fitted to fewer streams does not grow again";
}

TEST(Placements, CoverTheirStreams) {
  const Step step = random_step(3, 6);
  EXPECT_EQ(place(step, "serial").stream_count, 1);
  const Placement natural = place(step, "natural");
  for (std::size_t i = 0; i < natural.stream_of.size(); ++i) EXPECT_EQ(natural.stream_of[i], step.commands()[i].stream);
  const Placement robin = place(step, "round_robin");
  EXPECT_EQ(robin.stream_of[7], 1);
  EXPECT_THROW(place(step, "roundrobin"), Error);
}

TEST(Placements, CriticalPathKeepsChainsTogetherAndSpreadsTheRest) {
  StepBuilder builder(1);
  const KernelShape shape{.dims = {1024, chain_ops({ChainOp::abs})}, .scalars = {}};
  std::vector<BufferId> data;
  for (int chain = 0; chain < 2; ++chain) data.push_back(builder.uniform(ElementType::f32, 1024));
  for (int i = 0; i < 4; ++i)
    for (std::size_t chain = 0; chain < 2; ++chain)
      builder.launch("chain", {.stream = static_cast<StreamId>(chain)}, shape, {{data[chain]}, {data[chain]}});
  const Step step = std::move(builder).seal(2);
  const Placement placement = place(step, "critical_path");
  for (std::size_t i = 2; i < 8; ++i) EXPECT_EQ(placement.stream_of[i], placement.stream_of[i - 2]);
  EXPECT_NE(placement.stream_of[0], placement.stream_of[1]);
}

}  // namespace
}  // namespace weir
