// Activity records on a real GPU: queues of streams, order within them, and the host's clock. Skipped where there is no
// GPU or no CUPTI.
#include "device/gpu/gpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "device/gpu/activity.h"
#include "device/gpu/cuda.h"
#include "device/gpu_cases.h"
#include "kernel/gemm.h"
#include "kernel/moment.h"

namespace weir {
namespace {

using namespace gpu_cases;

class CudaActivity : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    const GpuApi* const api = cuda_api(&reason);
    if (api == nullptr) GTEST_SKIP() << reason;
    if (const auto found = find_gpus(*api); found.names.empty()) GTEST_SKIP() << found.reason;
    if (api->activity(&reason) == nullptr) GTEST_SKIP() << reason;
    device_ = open_gpu(*api, {});
  }
  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_;
};

std::size_t connections() {
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int value = text == nullptr ? 8 : std::atoi(text);
  return static_cast<std::size_t>(std::clamp(value, 1, 32));
}

TEST_F(CudaActivity, follows_edges) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) expect_sane_timeline(device(), seed);
}

// Kernels of 20 us on 40 streams, several deep: all queues are needed, and no more than there are.
TEST_F(CudaActivity, names_the_queues) {
  constexpr int kStreams = 40, kDepth = 5, kIterations = 3;
  StepBuilder builder(1);
  const BufferId moments = builder.host(ElementType::i32, kStreams * kDepth * kMomentElements, Init::constant);
  for (std::uint64_t i = 0; i < kDepth; ++i)
    for (std::uint64_t s = 0; s < kStreams; ++s)
      builder.launch("stamp", {.stream = static_cast<StreamId>(s)}, {.type = ElementType::i32, .dims = {20'000, 1}},
                     {{moments, (s * kDepth + i) * kMomentElements, kMomentElements}});
  const Step step = std::move(builder).seal(kStreams);
  const Placement placement = natural(step);
  const auto session = device().prepare(step, placement, {.is_traced = true, .trace_iterations = kIterations});
  iterate(*session, *inline_submitter(step, *session), {.iterations = kIterations});
  const std::int64_t finished = now_ns();
  const Timeline timeline = session->timeline();
  EXPECT_TRUE(timeline.has_exact_gaps) << timeline.source;
  ASSERT_EQ(timeline.spans.size(), std::size_t{kStreams * kDepth * kIterations});
  std::set<std::int32_t> queues;
  std::map<int, std::int64_t> ended;  // by stream
  for (const Span& span : timeline.spans) {
    ASSERT_NE(span.started_ns, kNoTime) << timeline.source;
    ASSERT_NE(span.queue, kNoQueue);
    queues.insert(span.queue);
    EXPECT_GE(span.ended_ns - span.started_ns, 15'000);
    const auto [last, is_first] = ended.try_emplace(span.stream, span.ended_ns);
    if (!is_first) {
      EXPECT_LE(last->second, span.started_ns) << "stream " << span.stream;
      last->second = span.ended_ns;
    }
    // On the host's clock, as well as the timeline says that it knows it.
    EXPECT_GE(static_cast<double>(span.started_ns), static_cast<double>(span.submitted_ns) - timeline.clock_error_ns);
    EXPECT_LE(span.ended_ns, finished + 1'000'000);
  }
  EXPECT_LE(queues.size(), connections());
  EXPECT_GE(queues.size(), 1u);
  std::printf("%zu queues of %zu, clock known to %.0f ns, %s\n", queues.size(), connections(), timeline.clock_error_ns,
              timeline.source.c_str());
  EXPECT_LT(timeline.clock_error_ns, 1e6);
}

TEST_F(CudaActivity, knows_recorded_products) {
  StepBuilder builder(3);
  for (StreamId s = 0; s < 4; ++s) {
    const BufferId a = builder.uniform(ElementType::f32, 256 * 256), b = builder.uniform(ElementType::f32, 256 * 256);
    const BufferId c = builder.output(ElementType::f32, 256 * 256);
    builder.launch("gemm", {.stream = s}, {.dims = {256, 256, 256, gemm_flags(false, false, 1)}, .scalars = {1, 0}},
                   {{a}, {b}, {c}});
    builder.launch("gelu", {.stream = s}, {.dims = {256 * 256}}, {{c}, {c}});
  }
  const Step step = std::move(builder).seal(4);
  const Placement placement = natural(step);
  const auto session = device().prepare(step, placement, {.is_traced = true, .trace_iterations = 5});
  iterate(*session, *inline_submitter(step, *session), {.iterations = 5});
  const Timeline timeline = session->timeline();
  std::printf("%s\n", timeline.source.c_str());
  for (const Span& span : timeline.spans) ASSERT_NE(span.started_ns, kNoTime) << timeline.source;
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const auto footprint = session->footprint(id);
    ASSERT_TRUE(footprint) << id;
    EXPECT_GE(footprint->blocks, 1u);
    EXPECT_GE(footprint->blocks_per_multiprocessor, 1u);
  }
}

// A pass may be traced, then another not, and so on: nothing of the profiler stays in the way.
TEST_F(CudaActivity, starts_and_stops_often) {
  const Step step = random_step(5, 4);
  const Placement placement = natural(step);
  for (int i = 0; i < 10; ++i) {
    const bool is_traced = i % 2 == 0;
    const auto session = device().prepare(step, placement, {.is_traced = is_traced, .trace_iterations = 2});
    iterate(*session, *inline_submitter(step, *session), {.iterations = 2});
    const Timeline timeline = session->timeline();
    EXPECT_EQ(timeline.has_exact_gaps, is_traced) << timeline.source;
    for (const Span& span : timeline.spans) ASSERT_NE(span.started_ns, kNoTime) << timeline.source;
    EXPECT_TRUE(read_all(*session, step) == reference(step, 2));
  }
}

TEST_F(CudaActivity, tells_about_others_on_the_board) {
  const Telemetry telemetry = device().telemetry();
  if (telemetry.utilisation) {
    EXPECT_GE(*telemetry.utilisation, 0);
    EXPECT_LE(*telemetry.utilisation, 1);
  }
  if (telemetry.other_processes) {
    EXPECT_GE(*telemetry.other_processes, 0);
  }
  std::printf("utilisation %s, other processes %s\n",
              telemetry.utilisation ? std::to_string(*telemetry.utilisation).c_str() : "unknown",
              telemetry.other_processes ? std::to_string(*telemetry.other_processes).c_str() : "unknown");
}

}  // namespace
}  // namespace weir
