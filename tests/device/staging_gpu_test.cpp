// Collectives through host memory on a real GPU, as far as one rank goes: words that streams wait for, and streams that
// are let go. Skipped where there is none.
#include <gtest/gtest.h>

#include <stdexcept>

#include "device/collective_cases.h"
#include "device/lone_rank.h"
#include "device/rank/alone.h"
#include "device/rank/network.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/steps.h"
#include "submit/submitter.h"
#include "support/cuda_test.h"

namespace weir {
namespace {

class StagingOnGpu : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    close_device();
  }
  static std::unique_ptr<Device> staging_gpu(Communicator& communicator) {
    std::string reason;
    return open_gpu(*cuda_api(&reason), {.communicator = &communicator, .stages_collectives = true});
  }
  static Step all_reduces(Ranks ranks, int streams) {
    StepBuilder builder(1, ranks);
    for (int i = 0; i < 3 * streams; ++i) {
      const BufferId from = builder.sharded(ElementType::f32, 1000), to = builder.output(ElementType::f32, 1000);
      builder.collective(CollectiveOp::all_reduce, {.stream = static_cast<StreamId>(i % streams)}, {from}, {to});
    }
    return std::move(builder).seal(streams);
  }
};

TEST_F(StagingOnGpu, equals_serial_execution) {
  AloneCommunicator alone;
  const auto device = staging_gpu(alone);
  for (unsigned seed = 1; seed <= 8; ++seed) {
    std::vector<Step> steps;
    steps.push_back(collective_cases::random_collective_step(seed, {0, 1, true}, 1 + static_cast<int>(seed % 5)));
    const auto expected = collective_cases::run_serially(steps, 5);
    for (const char* submit : {"inline", "threads:2"})
      for (const bool is_pipelined : {false, true}) {
        const auto found =
            conformance::run(*device, steps[0], conformance::natural(steps[0]), {submit, is_pipelined, 5});
        for (std::size_t buffer = 0; buffer < found.size(); ++buffer)
          ASSERT_TRUE(found[buffer] == expected[0][buffer])
              << "seed " << seed << ", buffer " << buffer << ", " << submit << (is_pipelined ? ", pipelined" : "");
      }
  }
}

// A collective's time is from its copy out to its copy in, however it is traced.
TEST_F(StagingOnGpu, timelines_show_the_network) {
  AloneCommunicator alone;
  NetworkCommunicator network(alone, {.latency_us = 400});
  const auto device = staging_gpu(network);
  const Step step = all_reduces({0, 1, true}, 2);
  const Placement placement = conformance::natural(step);
  for (const bool is_by_events : {false, true}) {
    const auto session =
        device->prepare(step, placement, {.is_traced = true, .trace_iterations = 2, .traces_by_events = is_by_events});
    conformance::iterate(*session, *inline_submitter(step, *session), {.iterations = 3});
    const Timeline timeline = session->timeline();
    EXPECT_EQ(conformance::timeline_problem(step, placement, timeline, {.iterations = 2}), "") << timeline.source;
    for (const Span& span : timeline.spans) EXPECT_GE(span.ended_ns - span.started_ns, 390'000) << timeline.source;
  }
}

TEST_F(StagingOnGpu, streams_that_wait_for_nobody_are_let_go) {
  const Step step = all_reduces({0, 2}, 4);
  const Placement placement = conformance::natural(step);
  {
    LoneRank failing({0, 2}, {0, 1});  // at the first start
    const auto device = staging_gpu(failing);
    const auto session = device->prepare(step, placement, {});
    session->begin_iteration();
    inline_submitter(step, *session)->submit_step();
    EXPECT_THROW(session->finish(), Error);
    EXPECT_THROW(session->finish(), Error);
  }
  LoneRank silent({0, 2}, {0, 1});
  silent.on_start = [] {};
  silent.on_test = [] { return false; };
  const auto device = staging_gpu(silent);
  EXPECT_THROW(
      {
        const auto session = device->prepare(step, placement, {});
        session->begin_iteration();
        inline_submitter(step, *session)->submit_step();
        throw std::runtime_error("something else");
      },
      std::runtime_error);
}

}  // namespace
}  // namespace weir
