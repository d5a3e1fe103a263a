// Collectives on the GPU device over the fake table: what is called on which stream, and what is refused.
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/fake_gpu.h"
#include "device/gpu/gpu.h"
#include "device/gpu_cases.h"
#include "device/lone_rank.h"

namespace weir {
namespace {

using namespace gpu_cases;

class GpuCollectiveCalls : public ::testing::Test {
 protected:
  void SetUp() override { fake_gpu::reset({}); }
  void TearDown() override { EXPECT_EQ(fake_gpu::leaks(), ""); }
};

Step all_ops(Ranks ranks) {
  StepBuilder builder(1, ranks);
  const auto parts = static_cast<std::uint64_t>(ranks.count);
  const BufferId one = builder.sharded(ElementType::f16, 10), all = builder.output(ElementType::f16, 10 * parts);
  const BufferId ints = builder.integers(4, 9), sums = builder.output(ElementType::i32, 4);
  builder.launch("fill", {.stream = 0}, {.dims = {1}}, {{builder.output(ElementType::f32, 1)}});
  builder.collective(CollectiveOp::all_gather, {.stream = 1}, {one}, {all});
  builder.collective(CollectiveOp::reduce_scatter, {.stream = 1}, {all}, {one});
  builder.collective(CollectiveOp::all_reduce, {.stream = 2}, {ints}, {sums});
  builder.collective(CollectiveOp::all_to_all, {.stream = 1}, {all}, {builder.output(ElementType::f16, 10 * parts)});
  builder.collective(CollectiveOp::shift, {.stream = 2}, {ints}, {builder.output(ElementType::i32, 4)});
  return std::move(builder).seal(3);
}

TEST_F(GpuCollectiveCalls, go_to_their_stream_with_a_communicator_of_its_own) {
  for (const int rank : {0, 2}) {
    const Step step = all_ops({rank, 3});
    const Placement placement = natural(step);
    for (const char* submit : {"inline", "graph"}) {
      fake_gpu::reset({});
      LoneRank communicator({rank, 3}, {0, 1});
      const auto device = open_gpu(fake_gpu::api(), {.communicator = &communicator});
      const SubmitChoice choice = parse_submit(submit, 3);
      const auto session = device->prepare(step, placement, {.mode = choice.mode});
      iterate(*session, *make_submitter(choice, step, placement, *session), {});
      const std::string after = rank == 0 ? "1" : "0", before = rank == 0 ? "2" : "1";
      std::vector<std::string> expected = {"all_gather 10 of type 6 by 0 on 1", "reduce_scatter 10 of type 6 by 0 on 1",
                                           "all_reduce 4 of type 2 by 1 on 2", "("};
      for (const char* peer : {"0", "1", "2"}) {
        expected.push_back(std::string("send to ") + peer + " 10 of type 6 by 0 on 1");
        expected.push_back(std::string("recv from ") + peer + " 10 of type 6 by 0 on 1");
      }
      expected.insert(expected.end(), {")", "(", "send to " + after + " 4 of type 2 by 1 on 2",
                                       "recv from " + before + " 4 of type 2 by 1 on 2", ")"});
      EXPECT_EQ(fake_gpu::collective_calls(), expected) << submit;
    }
  }
}

// Ranks 0 and 2 of four share parts, 0 and 1 others: sizes and neighbours are those of the group.
TEST_F(GpuCollectiveCalls, between_groups_have_a_communicator_for_each) {
  StepBuilder builder(1, {0, 4});
  const BufferId one = builder.sharded(ElementType::f16, 10), all = builder.output(ElementType::f16, 20);
  builder.collective(CollectiveOp::all_gather, {.stream = 0}, {one}, {all}, {2, 2});
  builder.collective(CollectiveOp::all_reduce, {.stream = 0}, {one}, {builder.output(ElementType::f16, 10)}, {1, 2});
  builder.collective(CollectiveOp::shift, {.stream = 1}, {one}, {builder.output(ElementType::f16, 10)}, {1, 2});
  builder.collective(CollectiveOp::all_reduce, {.stream = 1}, {one}, {builder.output(ElementType::f16, 10)});
  const Step step = std::move(builder).seal(2);
  const Placement placement = natural(step);
  LoneRank communicator({0, 4}, {0, 1});
  const auto device = open_gpu(fake_gpu::api(), {.communicator = &communicator});
  const SubmitChoice choice = parse_submit("inline", 2);
  const auto session = device->prepare(step, placement, {.mode = choice.mode});
  iterate(*session, *make_submitter(choice, step, placement, *session), {});
  // Made in this order: between all ranks, in pairs of neighbours by stream, in pairs of every second.
  const std::vector<std::string> expected = {
      "all_gather 10 of type 6 by 3 on 0", "all_reduce 10 of type 6 by 1 on 0",  "(",
      "send to 1 10 of type 6 by 2 on 1",  "recv from 1 10 of type 6 by 2 on 1", ")",
      "all_reduce 10 of type 6 by 0 on 1"};
  EXPECT_EQ(fake_gpu::collective_calls(), expected);
}

// What prepare() says and advises.
std::string prepare_refusal(Communicator* communicator, const fake_gpu::Settings& settings = {}) {
  fake_gpu::reset(settings);
  const auto device = open_gpu(fake_gpu::api(), {.communicator = communicator});
  const Step step = all_ops({0, 4});
  const Placement placement = natural(step);
  try {
    device->prepare(step, placement, {});
  } catch (const Error& error) {
    return std::string(error.what()) + ". " + error.hint;
  }
  return "";
}

TEST_F(GpuCollectiveCalls, need_other_ranks) {
  EXPECT_NE(prepare_refusal(nullptr).find("no other ranks"), std::string::npos) << prepare_refusal(nullptr);
}

// What the library cannot connect is staged through host memory; a driver that cannot do that either says both.
TEST_F(GpuCollectiveCalls, need_a_gpu_per_rank_or_streams_that_wait) {
  LoneRank crowded({0, 4}, {0, 4});
  EXPECT_EQ(
      prepare_refusal(&crowded, {.has_waits = false}),
      "collectives have to be staged through host memory (NCCL needs a GPU per rank: 4 ranks on this host, 1 GPU), "
      "but streams of fake cannot wait for a word in memory. Use --device cpu, or a GPU for each rank.");
  crowded.is_beside = true;
  const std::string both = prepare_refusal(&crowded, {.device_count = 4, .has_waits = false});
  EXPECT_NE(both.find("NCCL needs a GPU per rank: ranks 0 and 1 both use device 0"), std::string::npos) << both;
  EXPECT_EQ(prepare_refusal(&crowded), "");
}

TEST_F(GpuCollectiveCalls, need_a_library_or_streams_that_wait) {
  LoneRank communicator({0, 4}, {0, 1});
  for (const bool has_writes : {false, true}) {
    const std::string text =
        prepare_refusal(&communicator, {.has_writes = has_writes, .has_waits = !has_writes, .has_collectives = false});
    EXPECT_NE(text.find("(there are no fake collectives (rank 0)), but streams of fake cannot wait"), std::string::npos)
        << text;
  }
  EXPECT_EQ(prepare_refusal(&communicator, {.has_collectives = false}), "");
}

TEST_F(GpuCollectiveCalls, that_fail_are_named) {
  LoneRank communicator({0, 2}, {0, 1});
  GpuApi spoilt = fake_gpu::api();
  static GpuCollectives broken;
  broken = *spoilt.collectives(nullptr);
  broken.all_reduce = [](const void*, void*, std::size_t, int, int, GpuComm, GpuStream) { return 5; };
  spoilt.collectives = [](std::string*) -> const GpuCollectives* { return &broken; };
  const auto device = open_gpu(spoilt, {.communicator = &communicator});
  const Step step = all_ops({0, 2});
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {});
  session->begin_iteration();
  inline_submitter(step, *session)->submit_step();
  try {
    session->finish();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("submitting a collective 'all_reduce' (command 3, stream 2) failed: fake "
                        "collective error 5"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace weir
