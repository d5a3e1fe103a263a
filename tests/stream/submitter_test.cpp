#include "stream/submitter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>

#include "base/error.h"
#include "kernel/chain.h"
#include "kernel/random.h"
#include "stream/placement.h"

namespace weir {
namespace {

// Notes the order of arrival. A command that comes before one of its predecessors is an error, as on a real device
// where its wait would be a no-op.
class OrderSession final : public Session {
 public:
  explicit OrderSession(const Step& step) : step_(step), arrived_(step.commands().size()) {
    for (auto& flag : arrived_) flag.store(0);
  }
  void begin_iteration() noexcept override { ++iteration_; }
  void submit(std::span<const CommandId> commands) noexcept override {
    for (const CommandId id : commands) {
      for (const CommandId before : step_.predecessors(id))
        if (arrived_[before].load(std::memory_order_acquire) != iteration_) too_early_.fetch_add(1);
      if (arrived_[id].exchange(iteration_, std::memory_order_release) == iteration_) repeated_.fetch_add(1);
    }
  }
  void finish() override {}
  std::vector<IterationSpan> take_spans() override { return {}; }
  Timeline timeline() override { return {}; }
  void reset() override {}
  void read(BufferId, std::span<std::byte>) override {}
  MemoryUse memory() const override { return {}; }

  bool all_arrived() const {
    for (const auto& flag : arrived_)
      if (flag.load() != iteration_) return false;
    return true;
  }
  int too_early() const { return too_early_.load(); }
  int repeated() const { return repeated_.load(); }

 private:
  const Step& step_;
  std::vector<std::atomic<int>> arrived_;
  std::atomic<int> too_early_{0}, repeated_{0};
  int iteration_ = 0;
};

Step random_step(std::uint64_t seed, int streams) {
  StepBuilder builder(seed);
  std::uint64_t draw = 0;
  const auto next = [&](std::uint64_t below) { return random_bits(seed, draw++) % below; };
  std::vector<BufferId> buffers;
  for (int i = 0; i < 6; ++i) buffers.push_back(builder.uniform(ElementType::f32, 4));
  for (int i = 0; i < 120; ++i) {
    const auto stream =
        static_cast<StreamId>(i < streams ? i : static_cast<int>(next(static_cast<std::uint64_t>(streams))));
    builder.launch("chain", {.stream = stream}, {.dims = {4, chain_ops({ChainOp::abs})}, .scalars = {}},
                   {{buffers[next(6)]}, {buffers[next(6)]}});
  }
  return std::move(builder).seal(streams);
}

TEST(Submitters, HoldCommandsBackUntilTheirPredecessorsAreSubmitted) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Step step = random_step(seed, 5);
    for (const PlacementPolicy& policy : placement_policies()) {
      const Placement placement = policy.place(step);
      for (const char* way : {"inline", "graph", "threads:1", "threads:2", "threads:3", "threads:5"}) {
        OrderSession session(step);
        const auto submitter = make_submitter(parse_submit(way, 5), step, placement, session);
        for (int iteration = 0; iteration < 10; ++iteration) {
          session.begin_iteration();
          submitter->submit_step();
          ASSERT_TRUE(session.all_arrived()) << way;
        }
        EXPECT_EQ(session.too_early(), 0) << way << " " << policy.name << " seed " << seed;
        EXPECT_EQ(session.repeated(), 0) << way;
      }
    }
  }
}

TEST(Submitters, ThreadsWakeAfterAPause) {
  const Step step = random_step(1, 4);
  const Placement placement = place(step, "natural");
  OrderSession session(step);
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
  for (const char* bad : {"", "thread", "threads:", "threads:0", "threads:x", "threads:129", "graph:2", "channel"})
    EXPECT_THROW(parse_submit(bad, 8), Error) << bad;
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
