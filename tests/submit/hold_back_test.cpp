// Commands in any order of arrival come out in an order that is safe.
#include "submit/hold_back.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "step/workload/workload.h"
#include "submit/order_session.h"
#include "submit/placement.h"

namespace weir {
namespace {

std::vector<CommandId> shuffled(std::size_t count, std::mt19937& random) {
  std::vector<CommandId> ids(count);
  std::iota(ids.begin(), ids.end(), CommandId{0});
  std::shuffle(ids.begin(), ids.end(), random);
  return ids;
}

void expect_clean(const OrderSession& session) {
  EXPECT_TRUE(session.all_arrived());
  EXPECT_EQ(session.too_early(), 0);
  EXPECT_EQ(session.out_of_order(), 0);
  EXPECT_EQ(session.repeated(), 0);
}

TEST(HoldBack, TakesCommandsInAnyOrderAtAll) {
  std::mt19937 random(1);
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Step step = random_step(seed, 5);
    const Placement placement = placement_policies()[seed % 4].place(step);
    HoldBack hold_back(step, placement, 1);
    HoldBack::Part& part = hold_back.part(0);
    OrderSession session(step, placement);
    for (int iteration = 0; iteration < 4; ++iteration) {
      session.begin_iteration();
      part.begin();
      std::size_t given = 0;
      for (const CommandId id : shuffled(step.commands().size(), random)) {
        part.arrive(id);
        if (random() % 3 != 0) continue;  // several may have come before anybody looks
        const auto batch = part.next();
        session.submit(batch);
        given += batch.size();
        part.submitted();
      }
      session.submit(part.next());
      part.submitted();
      EXPECT_TRUE(part.is_done());
      EXPECT_LT(given, step.commands().size() + 1);
      expect_clean(session);
    }
  }
}

// The last to come holds everything back that depends on it, and nothing else.
TEST(HoldBack, HoldsBackOnlyWhatMustWait) {
  StepBuilder builder(1);
  const KernelShape shape{.dims = {4, chain_ops({ChainOp::abs})}, .scalars = {}};
  const BufferId a = builder.uniform(ElementType::f32, 4), b = builder.uniform(ElementType::f32, 4);
  const BufferId c = builder.uniform(ElementType::f32, 4);
  builder.launch("chain", {.stream = 0}, shape, {{a}, {a}});  // 0
  builder.launch("chain", {.stream = 1}, shape, {{b}, {b}});  // 1: free
  builder.launch("chain", {.stream = 2}, shape, {{a}, {c}});  // 2: behind 0
  builder.launch("chain", {.stream = 1}, shape, {{c}, {b}});  // 3: behind 1 and 2
  const Step step = std::move(builder).seal(3);
  const Placement placement = place(step, "natural");
  HoldBack hold_back(step, placement, 1);
  HoldBack::Part& part = hold_back.part(0);
  part.begin();
  part.arrive(3);
  EXPECT_TRUE(part.next().empty());
  part.arrive(2);
  EXPECT_TRUE(part.next().empty());
  part.arrive(1);
  ASSERT_EQ(part.next().size(), 1u);
  EXPECT_EQ(part.next()[0], 1u);
  part.submitted();
  EXPECT_TRUE(part.next().empty());
  part.arrive(0);
  const auto rest = part.next();
  EXPECT_EQ(std::vector<CommandId>(rest.begin(), rest.end()), (std::vector<CommandId>{0, 2, 3}));
  EXPECT_FALSE(part.is_done());
  part.submitted();
  EXPECT_TRUE(part.is_done());
}

TEST(HoldBack, PartsReleaseEachOthersCommands) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Step step = random_step(seed, 6, 400);
    const Placement placement = placement_policies()[seed % 4].place(step);
    const int parts = 2 + static_cast<int>(seed % 3);
    HoldBack hold_back(step, placement, parts);
    OrderSession session(step, placement);
    std::atomic<int> finished{0};
    for (int iteration = 1; iteration <= 5; ++iteration) {
      session.begin_iteration();
      std::vector<std::jthread> threads;
      for (int p = 0; p < parts; ++p)
        threads.emplace_back([&, p] {
          std::mt19937 random(static_cast<unsigned>(seed * 100 + static_cast<std::uint64_t>(p)));
          HoldBack::Part& part = hold_back.part(p);
          part.begin();
          std::vector<CommandId> own = shuffled(step.commands().size(), random);
          std::erase_if(own, [&](CommandId id) { return placement.stream_of[id] % parts != p; });
          EXPECT_EQ(own.size(), part.command_count());
          const std::int64_t deadline = now_ns() + 20'000'000'000;
          for (std::size_t i = 0; !part.is_done() && now_ns() < deadline;) {
            if (i < own.size()) part.arrive(own[i++]);
            part.take_released();
            for (auto batch = part.next(); !batch.empty(); batch = part.next()) {
              session.submit(batch);
              part.submitted();
            }
            if (i == own.size()) std::this_thread::yield();
          }
          finished += part.is_done() ? 1 : 0;
        });
      threads.clear();
      ASSERT_EQ(finished.load(), parts * iteration);
      expect_clean(session);
    }
  }
}

TEST(HoldBack, KnowsFewerPredecessorsThanTheStepHasEdges) {
  for (const Workload& workload : workloads()) {
    const Step step = workload.build(Params(workload.params, Scale::tiny, {}), workload.streams.recommended);
    const Placement placement = place(step, "natural");
    const auto before = submit_predecessors(step, placement);
    std::size_t edges = 0, kept = 0;
    for (CommandId id = 0; id < before.size(); ++id) {
      edges += step.predecessors(id).size();
      kept += before[id].size();
      for (const CommandId other : before[id]) EXPECT_LT(other, id);
      EXPECT_EQ(std::set<CommandId>(before[id].begin(), before[id].end()).size(), before[id].size());
    }
    EXPECT_LE(kept, edges + before.size()) << workload.name;
  }
}

// Ranks give their collectives to the device in the order of the step, whatever their channels did.
TEST(HoldBack, KeepsCollectivesInOneOrder) {
  const Workload& workload = workload_named("fsdp_tp");
  for (const int ranks : {1, 2}) {
    Params params(workload.params, Scale::tiny, {});
    params.ranks = {0, ranks};
    const Step step = workload.build(params, workload.streams.recommended);
    const Placement placement = place(step, "round_robin");
    HoldBack hold_back(step, placement, 1);
    HoldBack::Part& part = hold_back.part(0);
    std::mt19937 random(3);
    bool is_ordered = true;
    std::size_t collectives = 0;
    for (int iteration = 0; iteration < 20; ++iteration) {
      part.begin();
      CommandId last = 0;
      for (const CommandId arrived : shuffled(step.commands().size(), random)) {
        part.arrive(arrived);
        for (const CommandId id : part.next()) {
          if (step.commands()[id].kind != CommandKind::collective) continue;
          ++collectives;
          is_ordered = is_ordered && id >= last;
          last = id;
        }
        part.submitted();
      }
      EXPECT_TRUE(part.is_done());
    }
    if (ranks == 1) continue;
    EXPECT_GT(collectives, 20u);
    EXPECT_TRUE(is_ordered);
  }
}

}  // namespace
}  // namespace weir
