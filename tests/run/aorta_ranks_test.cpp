// Row of "What AORTA gets wrong": collectives are mocked (x * 1.0), no ranks. Here two ranks, as threads with a device
// each, really exchange data, and the outcome is checked on both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "device/rank/threads.h"
#include "run/check.h"
#include "run/runner.h"
#include "run/tiny_request.h"
#include "submit/placement.h"
#include "submit/submitter.h"
#include "support/replay.h"

namespace weir {
namespace {

constexpr int kRanks = 2;

template <class Body>
void on_every_rank(const Body& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&body, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
}

std::unique_ptr<Device> device_of(Communicator& communicator) {
  DeviceOptions options;
  options.workers = 1;
  options.communicator = &communicator;
  return open_device("cpu", options);
}

class AortaCollectives : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Workloads, AortaCollectives,
                         ::testing::Values("fsdp_tp", "grad_accum", "moe", "disaggregated_serving", "activation_ckpt",
                                           "ranking_transformer"),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

TEST_P(AortaCollectives, AreRunBetweenRanksAndCheckedOnAll) {
  for (const char* submit : {"inline", "graph"}) {
    ThreadWorld world(kRanks);
    std::vector<Result> results(kRanks);
    on_every_rank([&](int rank) {
      RunControl control;
      control.communicator = &world.rank(rank);
      const auto device = device_of(world.rank(rank));
      RunRequest request = tiny(GetParam());
      request.submit = parse_submit(submit);
      results[static_cast<std::size_t>(rank)] = run_workload(*device, request, {}, control);
    });
    const DeviceInfo info = open_device("cpu", {})->info();
    const Step step = build_run(info, tiny(GetParam()), {0, kRanks}).step;
    EXPECT_TRUE(std::ranges::any_of(step.commands(),
                                    [](const Command& command) { return command.kind == CommandKind::collective; }));
    for (const Result& result : results) {
      EXPECT_EQ(result.status, "complete") << submit << ": " << result.failure;
      EXPECT_EQ(result.check["status"], "passed") << submit;
    }
    // The result says what was between whom.
    EXPECT_EQ(results[0].ranks["count"], kRanks);
    EXPECT_EQ(results[0].ranks["library"], "threads of one process");
    EXPECT_FALSE(results[0].unavailable.contains("ranks"));
  }
}

TEST_P(AortaCollectives, OfOneRankAreBetweenStreamsAndTheResultSaysSo) {
  const auto device = open_device("cpu", {});
  const Result result = run_workload(*device, tiny(GetParam()), {}, {});
  EXPECT_EQ(result.check["status"], "passed") << result.failure;
  EXPECT_TRUE(result.ranks.is_null());
  EXPECT_NE(result.unavailable.at("ranks").find("between streams of one device"), std::string::npos);
}

// A session that hands out a collective's input where its output should be: what a mock computes.
class MockedSession final : public Session {
 public:
  MockedSession(std::unique_ptr<Session> whole, const Step& step, CommandId mocked)
      : whole_(std::move(whole)), step_(step), from_(step.accesses(mocked)[0]), to_(step.accesses(mocked)[1]) {}
  void begin_iteration() noexcept override { whole_->begin_iteration(); }
  void submit(std::span<const CommandId> commands) noexcept override { whole_->submit(commands); }
  void finish() override { whole_->finish(); }
  std::vector<IterationSpan> take_spans() override { return whole_->take_spans(); }
  Timeline timeline() override { return whole_->timeline(); }
  void reset() override { whole_->reset(); }
  MemoryUse memory() const override { return whole_->memory(); }
  void read(BufferId buffer, std::span<std::byte> bytes) override {
    whole_->read(buffer, bytes);
    if (buffer != to_.buffer) return;
    std::vector<std::byte> input(step_.buffers()[from_.buffer].size_bytes());
    whole_->read(from_.buffer, input);
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(from_.offset_bytes),
                std::min(from_.size_bytes, to_.size_bytes),
                bytes.begin() + static_cast<std::ptrdiff_t>(to_.offset_bytes));
  }

 private:
  std::unique_ptr<Session> whole_;
  const Step& step_;
  Access from_, to_;
};

TEST_P(AortaCollectives, AMockedOneFailsTheCheck) {
  ThreadWorld world(kRanks);
  std::vector<CheckReport> reports(kRanks);
  on_every_rank([&](int rank) {
    const auto device = device_of(world.rank(rank));
    const BuiltRun run = build_run(device->info(), tiny(GetParam()), {rank, kRanks});
    const auto commands = run.step.commands();
    // On rank 1: what rank 0 gathers begins with its own part, where a mock leaves it as well. Tokens that are sent to
    // experts may be none, sums and shifts are always there.
    const auto mocked = std::ranges::find_if(commands, [&](const Command& command) {
      return command.kind == CommandKind::collective && command.shape.type != ElementType::i32 &&
             command.collective != CollectiveOp::all_to_all;
    });
    const auto any =
        std::ranges::find_if(commands, [](const Command& command) { return command.kind == CommandKind::collective; });
    const auto id = static_cast<CommandId>((mocked != commands.end() ? mocked : any) - commands.begin());
    MockedSession session(device->prepare(run.step, run.placement, {}), run.step, id);
    const auto submitter = inline_submitter(run.step, session);
    session.begin_iteration();
    submitter->submit_step();
    session.finish();
    reports[static_cast<std::size_t>(rank)] = check_outputs(run.step, session, &world.rank(rank));
  });
  EXPECT_EQ(reports[1].status, CheckReport::Status::failed);
}

// What both ranks hold is the mean of what each alone would have got from its own samples.
TEST(AortaGradients, OnBothRanksAreTheMeanOverRanks) {
  std::vector<std::vector<double>> gradients(kRanks), alone(kRanks);
  ThreadWorld world(kRanks);
  on_every_rank([&](int rank) {
    const auto device = device_of(world.rank(rank));
    const BuiltRun run = build_run(device->info(), tiny("grad_accum"), {rank, kRanks});
    const auto session = device->prepare(run.step, run.placement, {});
    const auto submitter = inline_submitter(run.step, *session);
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
    auto& own = gradients[static_cast<std::size_t>(rank)];
    for (CommandId id = 0; id < run.step.commands().size(); ++id) {
      if (run.step.commands()[id].kind != CommandKind::collective) continue;
      EXPECT_EQ(run.step.commands()[id].collective, CollectiveOp::all_reduce);
      const Access& to = run.step.accesses(id)[1];
      std::vector<std::byte> bytes(run.step.buffers()[to.buffer].size_bytes());
      session->read(to.buffer, bytes);
      const auto values = floats(ElementType::f32, std::span(bytes).subspan(to.offset_bytes, to.size_bytes));
      own.insert(own.end(), values.begin(), values.end());
    }
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    // A rank's samples without the other one.
    const Step step = build_run(open_device("cpu", {})->info(), tiny("grad_accum"), {rank, 1}).step;
    Replay replay(step);
    replay.run();
    for (const CommandId id : launches_of(step, "sum_rows")) {
      const auto values = floats(ElementType::f32, replay.bytes(step.accesses(id)[1]));
      alone[static_cast<std::size_t>(rank)].insert(alone[static_cast<std::size_t>(rank)].end(), values.begin(),
                                                   values.end());
    }
  }
  ASSERT_FALSE(gradients[0].empty());
  ASSERT_EQ(gradients[0].size(), alone[0].size());
  EXPECT_EQ(gradients[0], gradients[1]);
  double size = 0, difference = 0;
  for (std::size_t i = 0; i < alone[0].size(); ++i) {
    const double mean = (alone[0][i] + alone[1][i]) / 2;
    EXPECT_NEAR(gradients[0][i], mean, 1e-5) << i;
    size += std::fabs(mean);
    difference += std::fabs(alone[0][i] - mean);
  }
  EXPECT_GT(difference, size / 10) << "ranks have samples of their own, so each alone would be wrong";
}

}  // namespace
}  // namespace weir
