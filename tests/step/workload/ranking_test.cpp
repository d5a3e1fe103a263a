// ranking_transformer's step: who has which parameters, what is gathered when, how collectives are cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "step/workload/ranking_transformer.h"
#include "step/workload/workload.h"

namespace weir {
namespace {

using Assignments = std::vector<std::pair<std::string, std::string>>;
enum Role { kCompute, kAllGather, kReduceScatter, kAux };

Step build_ranking(const Assignments& assignments, Ranks ranks = {}, int streams = 4, Scale scale = Scale::tiny,
                   Precision precision = Precision::fp32) {
  const Workload& workload = workload_named("ranking_transformer");
  Params params(workload.params, scale, assignments);
  params.ranks = ranks;
  params.precision = precision;
  return workload.build(params, streams);
}

std::string_view name_of(const Step& step, CommandId id) {
  const Command& command = step.commands()[id];
  return command.kind == CommandKind::kernel ? kernel(command.kernel).name : std::string_view();
}

std::vector<CommandId> collectives(const Step& step, CollectiveOp op, int role) {
  std::vector<CommandId> found;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    if (command.kind == CommandKind::collective && command.collective == op && command.role == role)
      found.push_back(id);
  }
  return found;
}

std::vector<CommandId> launches(const Step& step, std::string_view name) {
  std::vector<CommandId> found;
  for (CommandId id = 0; id < step.commands().size(); ++id)
    if (name_of(step, id) == name) found.push_back(id);
  return found;
}

std::vector<float> initial(const Step& step, BufferId id) {
  const Buffer& buffer = step.buffers()[id];
  std::vector<float> values(buffer.count);
  initialise(buffer, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Ranking, IsRegisteredAsSpecified) {
  const Workload& workload = workload_named("ranking_transformer");
  EXPECT_EQ(workload.category, "distributed");
  EXPECT_EQ(workload.unit, "samples/s");
  EXPECT_EQ(workload.priority, 1);
  EXPECT_EQ(workload.scaling, Scaling::divided);
  EXPECT_EQ(workload.roles, std::vector<std::string>({"compute", "all_gather", "reduce_scatter", "aux"}));
}

TEST(Ranking, GivesEveryStreamWorkOfOneRole) {
  for (const char* mode : {"fsdp", "ddp"})
    for (const Scale scale : {Scale::tiny, Scale::small, Scale::full})
      for (int streams = 4; streams <= 16; ++streams) {
        const Step step = build_ranking({{"mode", mode}}, {0, 4}, streams, scale);
        std::vector<std::set<int>> roles(static_cast<std::size_t>(streams));
        for (const Command& command : step.commands()) roles[command.stream].insert(command.role);
        for (const auto& of_stream : roles) EXPECT_EQ(of_stream.size(), 1u) << mode << " on " << streams;
        EXPECT_EQ(step.cost().flop, build_ranking({{"mode", mode}}, {0, 4}, 4, scale).cost().flop);
      }
}

TEST(Ranking, DividesTheBatchAmongRanks) {
  EXPECT_EQ(build_ranking({}).work(), 8);
  EXPECT_EQ(build_ranking({}, {1, 4}).work(), 2);
  EXPECT_EQ(build_ranking({{"accumulation", "3"}}, {1, 4}).work(), 6);
  try {
    build_ranking({{"batch", "10"}}, {0, 4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_NE(std::string(error.what()).find("world size = 4"), std::string::npos) << error.what();
    EXPECT_NE(error.hint.find("8 or 12"), std::string::npos) << error.hint;
  }
  EXPECT_THROW(build_ranking({{"dim", "18"}, {"heads", "4"}}), Error);
}

// Put together from all ranks, shards begin as what a rank with everything begins with.
TEST(Ranking, ShardsArePartsOfTheSameParameters) {
  const Step whole = build_ranking({{"mode", "ddp"}, {"scorer", "7"}});
  for (const char* bucket : {"0", "1", "3"}) {
    const int ranks = 3;
    std::vector<Step> steps;
    for (int rank = 0; rank < ranks; ++rank)
      steps.push_back(
          build_ranking({{"bucket_kib", bucket}, {"scorer", "7"}, {"batch", "9"}, {"reshard", "0"}}, {rank, ranks}));
    const auto expected_updates = launches(whole, "adamw");
    const auto updates = launches(steps[0], "adamw");
    ASSERT_EQ(updates.size(), expected_updates.size());
    for (std::size_t u = 0; u < updates.size(); ++u) {
      const std::vector<float> expected = initial(whole, whole.accesses(expected_updates[u])[1].buffer);
      std::vector<std::vector<float>> shards;
      for (const Step& step : steps) shards.push_back(initial(step, step.accesses(updates[u])[1].buffer));
      // Where a rank's shard goes is what its gathers say.
      std::vector<float> gathered;
      const BufferId low = steps[0].accesses(updates[u])[5].buffer;
      for (const CommandId id : collectives(steps[0], CollectiveOp::all_gather, kAllGather)) {
        const Access& from = steps[0].accesses(id)[0];
        const Access& to = steps[0].accesses(id)[1];
        if (from.buffer != low) continue;
        gathered.resize(std::max(gathered.size(), (to.offset_bytes + to.size_bytes) / 4));
        for (std::size_t r = 0; r < shards.size(); ++r)
          std::copy_n(shards[r].begin() + static_cast<std::ptrdiff_t>(from.offset_bytes / 4), from.size_bytes / 4,
                      gathered.begin() + static_cast<std::ptrdiff_t>((to.offset_bytes + r * from.size_bytes) / 4));
      }
      ASSERT_GE(gathered.size(), expected.size());
      gathered.resize(expected.size());
      EXPECT_EQ(gathered, expected) << "unit " << u << ", bucket " << bucket;
    }
  }
}

TEST(Ranking, LowPrecisionCopiesAreTheMastersRounded) {
  const Step step = build_ranking({}, {1, 2}, 4, Scale::tiny, Precision::bf16);
  for (const CommandId id : launches(step, "adamw")) {
    const std::vector<float> master = initial(step, step.accesses(id)[1].buffer);
    const Buffer& low = step.buffers()[step.accesses(id)[5].buffer];
    ASSERT_EQ(low.type, ElementType::bf16);
    std::vector<Bf16> rounded(low.count);
    initialise(low, std::as_writable_bytes(std::span(rounded)));
    for (std::size_t i = 0; i < master.size(); ++i) ASSERT_EQ(rounded[i].bits, from_float<Bf16>(master[i]).bits) << i;
  }
}

// Turns of a micro-batch, by what is gathered: all units, then the layers again from the last to the first.
TEST(Ranking, GathersAsFarAheadAsAskedAndNoFurther) {
  for (const int prefetch : {0, 1, 3, 64}) {
    const Step step = build_ranking({{"prefetch", std::to_string(prefetch)}, {"layers", "5"}}, {0, 2});
    const auto gathers = collectives(step, CollectiveOp::all_gather, kAllGather);
    ASSERT_EQ(gathers.size(), 7u + 5u);
    std::set<BufferId> slots;
    for (std::size_t turn = 0; turn < gathers.size(); ++turn) {
      const Access& to = step.accesses(gathers[turn])[1];
      slots.insert(to.buffer);
      // Commands that use it: until the slot is gathered into again.
      CommandId first = 0, last = 0;
      for (CommandId id = gathers[turn] + 1; id < step.commands().size(); ++id) {
        const auto accesses = step.accesses(id);
        const bool is_reused = std::ranges::any_of(
            accesses, [&](const Access& access) { return access.buffer == to.buffer && access.writes; });
        if (is_reused) break;
        const bool is_used = std::ranges::any_of(
            accesses, [&](const Access& access) { return access.buffer == to.buffer && access.reads; });
        if (is_used && first == 0) first = id;
        if (is_used) last = id;
      }
      ASSERT_GT(first, 0u) << "turn " << turn << " is gathered for nobody";
      // Submitted before its use by `prefetch` turns.
      const auto ahead = static_cast<std::size_t>(prefetch);
      if (turn + ahead < gathers.size()) {
        EXPECT_LT(gathers[turn + ahead], first) << turn;
      }
      if (turn + ahead + 1 < gathers.size()) {
        const CommandId next = gathers[turn + ahead + 1];
        EXPECT_GT(next, first) << turn;
        // And held back by what still reads the slot, though nothing else says so.
        EXPECT_EQ(step.accesses(next)[1].buffer, to.buffer);
        EXPECT_TRUE(std::ranges::binary_search(step.predecessors(next), last)) << turn;
      }
    }
    EXPECT_EQ(slots.size(), std::min<std::size_t>(gathers.size(), static_cast<std::size_t>(prefetch) + 1));
  }
}

TEST(Ranking, GathersOnceWhereNothingIsLetGo) {
  for (const char* accumulation : {"1", "3"}) {
    const Step step = build_ranking({{"reshard", "0"}, {"accumulation", accumulation}}, {0, 2});
    EXPECT_EQ(collectives(step, CollectiveOp::all_gather, kAllGather).size(), 4u);
    EXPECT_EQ(collectives(step, CollectiveOp::reduce_scatter, kReduceScatter).size(), 4u);
  }
  const Step step = build_ranking({{"accumulation", "3"}}, {0, 2});
  EXPECT_EQ(collectives(step, CollectiveOp::all_gather, kAllGather).size(), 3 * (4u + 2u));
  EXPECT_EQ(collectives(step, CollectiveOp::reduce_scatter, kReduceScatter).size(), 4u) << "after the last micro-batch";
}

TEST(Ranking, CollectivesAreNoLargerThanABucket) {
  for (const char* mode : {"fsdp", "ddp"})
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const int kib : {1, 2, 5}) {
        const Step step = build_ranking({{"mode", mode}, {"bucket_kib", std::to_string(kib)}, {"scorer", "7"}}, {0, 4},
                                        4, Scale::tiny, precision);
        std::size_t seen = 0;
        for (CommandId id = 0; id < step.commands().size(); ++id) {
          if (step.commands()[id].kind != CommandKind::collective || step.commands()[id].role == kAux) continue;
          ++seen;
          for (const Access& access : step.accesses(id))
            EXPECT_LE(access.size_bytes, 1024u * static_cast<unsigned>(kib));
        }
        EXPECT_GE(seen, 2u);
      }
}

// A bucket is on its way as soon as its last unit's gradient has been submitted, and all of them cover every element.
TEST(Ranking, DdpReducesBucketsWhileBackwardGoesOn) {
  for (const char* bucket : {"0", "3", "1000"}) {
    const Step step = build_ranking({{"mode", "ddp"}, {"bucket_kib", bucket}}, {0, 2});
    const auto reductions = collectives(step, CollectiveOp::all_reduce, kReduceScatter);
    ASSERT_FALSE(reductions.empty());
    const BufferId gradients = step.accesses(reductions[0])[0].buffer;
    std::uint64_t covered = 0;
    for (const CommandId id : reductions) {
      const Access& from = step.accesses(id)[0];
      EXPECT_EQ(from.buffer, gradients);
      EXPECT_EQ(from.offset_bytes, covered);
      covered += from.size_bytes;
      // After everything that writes into the bucket.
      CommandId last = 0;
      for (CommandId other = 0; other < step.commands().size(); ++other)
        for (const Access& access : step.accesses(other))
          if (access.writes && access.buffer == gradients && access.offset_bytes < covered) last = other;
      EXPECT_GT(id, last);
    }
    EXPECT_EQ(covered, step.buffers()[gradients].size_bytes());
    if (std::string_view(bucket) == "0") {
      ASSERT_EQ(reductions.size(), 4u);
      const CommandId embedding = launches(step, "embedding_grad")[0];
      EXPECT_LT(reductions[2], embedding) << "the first layer's is on its way before the root's is computed";
      EXPECT_GT(reductions[3], embedding);
    }
  }
}

TEST(Ranking, GradientsShareSlotsInTurn) {
  const Step step = build_ranking({}, {0, 2});
  const auto reductions = collectives(step, CollectiveOp::reduce_scatter, kReduceScatter);
  ASSERT_EQ(reductions.size(), 4u);
  for (std::size_t i = 0; i + 2 < 4; ++i) {
    const BufferId slot = step.accesses(reductions[i])[0].buffer;
    EXPECT_EQ(slot, step.accesses(reductions[i + 2])[0].buffer);
    EXPECT_NE(slot, step.accesses(reductions[i + 1])[0].buffer);
  }
  std::set<BufferId> apart;
  const Step own = build_ranking({{"gradient_slots", "0"}}, {0, 2});
  for (const CommandId id : collectives(own, CollectiveOp::reduce_scatter, kReduceScatter))
    apart.insert(own.accesses(id)[0].buffer);
  EXPECT_EQ(apart.size(), 4u);
}

TEST(Ranking, NormsAreOfAllRanks) {
  EXPECT_EQ(collectives(build_ranking({}, {0, 2}), CollectiveOp::all_reduce, kAux).size(), 2u)
      << "the loss and the squares";
  EXPECT_EQ(collectives(build_ranking({{"clip", "0"}}, {0, 2}), CollectiveOp::all_reduce, kAux).size(), 1u);
  EXPECT_EQ(collectives(build_ranking({{"mode", "ddp"}}, {0, 2}), CollectiveOp::all_reduce, kAux).size(), 1u);
  EXPECT_TRUE(launches(build_ranking({{"clip", "0"}}), "square_sum").empty());
}

TEST(Ranking, LossIsWhatTheLastReductionOfOneNumberLeaves) {
  for (const char* mode : {"fsdp", "ddp"})
    for (const char* accumulation : {"1", "2"})
      for (const Ranks ranks : {Ranks{}, Ranks{0, 1, true}, Ranks{1, 2}}) {
        const Step step = build_ranking({{"mode", mode}, {"accumulation", accumulation}}, ranks);
        const BufferId loss = ranking_buffers(step).loss;
        EXPECT_EQ(step.buffers()[loss].count, 1u);
        EXPECT_EQ(step.buffers()[loss].type, ElementType::f32);
        // From the entropies, by reductions alone.
        std::set<BufferId> from;
        for (const CommandId id : launches(step, "weighted_bce")) from.insert(step.accesses(id)[4].buffer);
        for (const CommandId id : launches(step, "sum_rows"))
          if (from.contains(step.accesses(id)[0].buffer)) from.insert(step.accesses(id)[1].buffer);
        bool is_reached = false;
        for (CommandId id = 0; id < step.commands().size(); ++id)
          for (const Access& access : step.accesses(id))
            if (access.writes && access.buffer == loss) is_reached = from.contains(step.accesses(id)[0].buffer);
        EXPECT_TRUE(is_reached) << mode;
        // A part of the step still has it.
        const Step part = only_role(step, kAux);
        EXPECT_EQ(part.buffers()[ranking_buffers(part).loss].seed, step.buffers()[loss].seed);
      }
  EXPECT_THROW(ranking_buffers(only_role(build_ranking({}), kCompute)), Error);
}

}  // namespace
}  // namespace weir
