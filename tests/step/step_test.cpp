#include "step/step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "kernel/chain.h"
#include "kernel/random.h"

namespace weir {
namespace {

KernelShape copy_of(std::int64_t n) { return {.dims = {n}, .scalars = {}}; }

std::vector<CommandId> list(std::span<const CommandId> ids) { return {ids.begin(), ids.end()}; }

TEST(Step, DerivesTheThreeHazards) {
  StepBuilder builder(1);
  const BufferId x = builder.uniform(ElementType::f32, 8);
  const BufferId y = builder.output(ElementType::f32, 8);
  const BufferId z = builder.output(ElementType::f32, 8);
  const CommandId write_y = builder.launch("copy", {}, copy_of(8), {{x}, {y}});
  const CommandId read_y = builder.launch("copy", {}, copy_of(8), {{y}, {z}});     // read after write
  const CommandId rewrite_y = builder.launch("copy", {}, copy_of(8), {{x}, {y}});  // write after read, after write
  const Step step = std::move(builder).seal(1);
  EXPECT_TRUE(step.predecessors(write_y).empty());
  EXPECT_EQ(list(step.predecessors(read_y)), std::vector<CommandId>({write_y}));
  EXPECT_EQ(list(step.predecessors(rewrite_y)), std::vector<CommandId>({write_y, read_y}));
}

TEST(Step, RangesThatDoNotTouchAreIndependent) {
  StepBuilder builder(1);
  const BufferId x = builder.uniform(ElementType::f32, 8);
  const BufferId y = builder.output(ElementType::f32, 8);
  builder.launch("copy", {}, copy_of(4), {{x, 0, 4}, {y, 0, 4}});
  builder.launch("copy", {}, copy_of(4), {{x, 4, 4}, {y, 4, 4}});
  const CommandId across = builder.launch("copy", {}, copy_of(2), {{x, 0, 2}, {y, 3, 2}});
  const Step step = std::move(builder).seal(1);
  EXPECT_TRUE(step.predecessors(1).empty());
  EXPECT_EQ(list(step.predecessors(across)), std::vector<CommandId>({0, 1}));
}

TEST(Step, KnowsWhatTiesIterations) {
  StepBuilder builder(1);
  const BufferId x = builder.uniform(ElementType::f32, 8);
  const BufferId y = builder.output(ElementType::f32, 8);
  const BufferId z = builder.output(ElementType::f32, 8);
  const CommandId write = builder.launch("copy", {}, copy_of(8), {{x}, {y}});
  const CommandId read = builder.launch("copy", {}, copy_of(8), {{y}, {z}});
  const Step step = std::move(builder).seal(1);
  // The next iteration's write must not overtake this iteration's read.
  EXPECT_EQ(list(step.carried(write)), std::vector<CommandId>({read}));
  EXPECT_TRUE(step.is_repeatable());
}

TEST(Step, ReadingWhatTheLastIterationWroteIsNotRepeatable) {
  StepBuilder builder(1);
  const BufferId x = builder.uniform(ElementType::f32, 8);
  builder.launch("chain", {}, {.dims = {8, chain_ops({ChainOp::mul})}, .scalars = {2.0f}}, {{x}, {x}});
  EXPECT_FALSE(std::move(builder).seal(1).is_repeatable());
}

TEST(Step, RejectsIdleStreamsAndBadOperands) {
  {
    StepBuilder builder(1);
    const BufferId x = builder.output(ElementType::f32, 8);
    builder.launch("fill", {.stream = 1}, {.dims = {8}, .scalars = {}}, {{x}});
    EXPECT_THROW(std::move(builder).seal(2), Error);  // stream 0 has nothing
  }
  StepBuilder builder(1);
  const BufferId x = builder.uniform(ElementType::f32, 8);
  const BufferId y = builder.output(ElementType::f32, 8);
  EXPECT_THROW(builder.launch("copy", {}, copy_of(8), {{x}}), Error);
  EXPECT_THROW(builder.launch("copy", {}, copy_of(9), {{x}, {y}}), Error);
  EXPECT_THROW(builder.launch("copy", {}, copy_of(4), {{x, 6, 4}, {y, 0, 4}}), Error);
  EXPECT_THROW(builder.launch("copy", {}, copy_of(8), {{x}, {99}}), Error);
  EXPECT_THROW(builder.launch("copi", {}, copy_of(8), {{x}, {y}}), Error);
  EXPECT_THROW(builder.copy({}, {x, 0, 4}, {y, 0, 8}), Error);
  EXPECT_THROW(builder.uniform(ElementType::f32, 0), Error);
}

// Bytes of a step's buffers on the host, and commands run on them one by one.
struct HostMemory {
  explicit HostMemory(const Step& step) : step(step) {
    for (const Buffer& buffer : step.buffers()) {
      bytes.emplace_back(buffer.size_bytes());
      initialise(buffer, bytes.back());
    }
  }
  void run(CommandId id) {
    const auto accesses = step.accesses(id);
    KernelCall call{step.commands()[id].shape, {}};
    for (std::size_t i = 0; i < accesses.size(); ++i)
      call.operands[i] = bytes[accesses[i].buffer].data() + accesses[i].offset_bytes;
    kernel(step.commands()[id].kernel).reference(call);
  }
  const Step& step;
  std::vector<std::vector<std::byte>> bytes;
};

Step random_step(std::uint64_t seed) {
  StepBuilder builder(seed);
  std::uint64_t draw = 0;
  const auto next = [&](std::uint64_t below) { return random_bits(seed, draw++) % below; };
  std::vector<BufferId> buffers;
  for (std::uint64_t i = 0; i < 2 + next(4); ++i) buffers.push_back(builder.uniform(ElementType::f32, 16));
  const std::uint64_t commands = 5 + next(30);
  for (std::uint64_t i = 0; i < commands; ++i) {
    const std::uint64_t count = 1 + next(8);
    const Operand in{buffers[next(buffers.size())], next(16 - count + 1), count};
    Operand out{buffers[next(buffers.size())], next(16 - count + 1), count};
    // Partly overlapping operands of one command are undefined, as in any library; all or nothing is fine.
    if (in.buffer == out.buffer) out.offset = in.offset;
    const KernelShape shape{.dims = {static_cast<std::int64_t>(count), chain_ops({ChainOp::mul, ChainOp::add})},
                            .scalars = {0.5f, static_cast<float>(i)}};
    builder.launch("chain", {}, shape, {in, out});
  }
  return std::move(builder).seal(1);
}

TEST(Step, EveryLegalOrderGivesTheSameBuffers) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Step step = random_step(seed);
    HostMemory serial(step);
    const auto count = static_cast<CommandId>(step.commands().size());
    for (CommandId id = 0; id < count; ++id) serial.run(id);

    HostMemory shuffled(step);
    std::vector<bool> is_done(count, false);
    for (CommandId done = 0; done < count; ++done) {
      std::vector<CommandId> ready;
      for (CommandId id = 0; id < count; ++id) {
        const auto before = step.predecessors(id);
        if (!is_done[id] && std::all_of(before.begin(), before.end(), [&](CommandId b) { return is_done[b]; }))
          ready.push_back(id);
      }
      ASSERT_FALSE(ready.empty());
      const CommandId chosen = ready[random_bits(seed * 7919, done) % ready.size()];
      shuffled.run(chosen);
      is_done[chosen] = true;
    }
    ASSERT_EQ(serial.bytes, shuffled.bytes) << "seed " << seed;
  }
}

TEST(Step, RepeatingARepeatableStepChangesNothing) {
  int repeatable = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Step step = random_step(seed);
    HostMemory memory(step);
    for (CommandId id = 0; id < step.commands().size(); ++id) memory.run(id);
    const auto once = memory.bytes;
    for (CommandId id = 0; id < step.commands().size(); ++id) memory.run(id);
    if (step.is_repeatable()) {
      ++repeatable;
      ASSERT_EQ(once, memory.bytes) << "seed " << seed;
    }
  }
  EXPECT_LT(repeatable, 200);
}

TEST(Step, OneRoleAloneKeepsItsData) {
  StepBuilder builder(5);
  const BufferId a = builder.uniform(ElementType::f32, 4);
  const BufferId b = builder.output(ElementType::f32, 4);
  const BufferId c = builder.uniform(ElementType::f32, 4);
  const BufferId d = builder.output(ElementType::f32, 4);
  builder.launch("copy", {.stream = 0, .role = 0}, copy_of(4), {{a}, {b}});
  builder.launch("copy", {.stream = 1, .role = 1}, copy_of(4), {{c}, {d}});
  const Step step = std::move(builder).seal(2);
  const Step alone = only_role(step, 1);
  ASSERT_EQ(alone.commands().size(), 1u);
  EXPECT_EQ(alone.stream_count(), 1);
  ASSERT_EQ(alone.buffers().size(), 2u);
  EXPECT_EQ(alone.buffers()[0].seed, step.buffers()[c].seed);
  EXPECT_TRUE(alone.buffers()[1].is_written);
}

TEST(RankGroup, SaysWhoIsInIt) {
  const auto members = [](const RankGroup& group, int count) {
    std::vector<std::string> found;
    for (int rank = 0; rank < count; ++rank) {
      const Ranks own = group.within({rank, count});
      EXPECT_EQ(group.first(rank) + own.rank * group.stride, rank);
      found.push_back(std::to_string(own.rank) + "/" + std::to_string(own.count));
    }
    return found;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(members({1, 2}, 4), (Texts{"0/2", "1/2", "0/2", "1/2"}));
  EXPECT_EQ(members({2, 2}, 4), (Texts{"0/2", "0/2", "1/2", "1/2"}));
  EXPECT_EQ(members({1, 2, 1}, 4), (Texts{"0/1", "0/2", "1/2", "0/1"}));
  EXPECT_EQ(members({2, 2, 1}, 6), (Texts{"0/1", "0/1", "0/2", "0/2", "1/2", "1/2"}));
  EXPECT_EQ(RankGroup{}.within({2, 5}).rank, 2);
  EXPECT_EQ(RankGroup{}.within({2, 5}).count, 5);
}

TEST(RankGroup, ACollectiveNeedsSizesOfItsGroup) {
  StepBuilder step(1, {3, 4});
  const BufferId from = step.uniform(ElementType::f32, 8), to = step.output(ElementType::f32, 16);
  EXPECT_ANY_THROW(step.collective(CollectiveOp::all_gather, {}, {from, 0, 4}, {to, 0, 16}, {2, 2}));
  const Step sealed = [] {
    StepBuilder own(1, {3, 4});
    const BufferId in = own.uniform(ElementType::f32, 8), out = own.output(ElementType::f32, 16);
    own.collective(CollectiveOp::all_gather, {}, {in, 0, 4}, {out, 0, 8}, {2, 2});
    own.collective(CollectiveOp::all_reduce, {}, {in, 0, 4}, {out, 8, 4}, {1, 2, 1});  // rank 3 is alone
    return std::move(own).seal(1);
  }();
  EXPECT_EQ(sealed.commands()[0].kind, CommandKind::collective);
  EXPECT_EQ(sealed.commands()[1].kind, CommandKind::copy);
  EXPECT_EQ(rank_groups(sealed), (std::vector<RankGroup>{{2, 2}}));
}

TEST(Initialise, GivesPoisonConstantsAndPermutations) {
  std::vector<std::byte> bytes(4 * 100);
  Buffer buffer{.type = ElementType::f32, .init = Init::poison, .count = 100};
  initialise(buffer, bytes);
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  EXPECT_TRUE(std::isnan(value));

  buffer.type = ElementType::i32;
  buffer.init = Init::indices;
  initialise(buffer, bytes);
  std::vector<std::int32_t> indices(100);
  std::memcpy(indices.data(), bytes.data(), bytes.size());
  const std::set<std::int32_t> distinct(indices.begin(), indices.end());
  EXPECT_EQ(distinct.size(), 100u);
  EXPECT_EQ(*distinct.begin(), 0);
  EXPECT_EQ(*distinct.rbegin(), 99);
  EXPECT_NE(indices[0] * 100 + indices[1], 1) << "not shuffled";
}

}  // namespace
}  // namespace weir
