// The cuda device on a real GPU, beyond what the conformance table examines: times, errors, telemetry. Skipped where
// there is none.
#include "device/gpu/gpu.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.h"
#include "device/gpu/cuda.h"
#include "device/gpu_cases.h"
#include "support/cuda_test.h"

namespace weir {
namespace {

using namespace gpu_cases;

class Cuda : public CudaTest {};

// A kernel of known duration: device times, host times and the mapping between them agree.
TEST_F(Cuda, times_are_right) {
  constexpr std::int64_t kSpin_ns = 2'000'000;
  StepBuilder builder(1);
  for (StreamId s = 0; s < 2; ++s)
    builder.launch("spin", {.stream = s}, {.dims = {kSpin_ns, 1}}, {{builder.output(ElementType::f32, 1)}});
  const Step step = std::move(builder).seal(2);
  const Placement placement = natural(step);
  const auto session = device().prepare(step, placement, {.is_traced = true, .trace_iterations = 20});
  iterate(*session, *inline_submitter(step, *session), {.iterations = 20});
  for (const IterationSpan& span : session->take_spans()) {
    EXPECT_GT(span.ended_ns - span.started_ns, kSpin_ns - 10'000);
    EXPECT_LT(span.ended_ns - span.started_ns, kSpin_ns + 1'000'000);
  }
  const Timeline timeline = session->timeline();
  EXPECT_LT(timeline.clock_error_ns, 100'000);
  for (const Span& span : timeline.spans) {
    EXPECT_GT(span.ended_ns - span.started_ns, kSpin_ns - 10'000);
    EXPECT_LT(static_cast<double>(span.submitted_ns), static_cast<double>(span.started_ns) + timeline.clock_error_ns);
  }
}

TEST_F(Cuda, out_of_memory_says_how_much) {
  StepBuilder builder(1);
  const std::uint64_t count = std::uint64_t{1} << 40;  // 4 TiB
  const BufferId big = builder.output(ElementType::f32, count);
  builder.launch("fill", {}, {.dims = {static_cast<std::int64_t>(count), 0}}, {{big}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  try {
    device().prepare(step, placement, {});
    FAIL() << "4 TiB fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_NE(std::string(error.what()).find("needed"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("free"), std::string::npos) << error.what();
    EXPECT_FALSE(error.hint.empty());
  }
}

// A table whose launches are spoilt on the way to the driver.
decltype(GpuApi::launch) g_launch = nullptr;

TEST_F(Cuda, a_refused_launch_is_thrown_by_finish) {
  GpuApi spoilt = *cuda_api(nullptr);
  g_launch = spoilt.launch;
  const auto device = open_gpu(spoilt, {});
  const Step step = random_step(2, 2);
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {});
  spoilt.launch = [](GpuFunction function, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned,
                     unsigned shared, GpuStream stream, void** parameters, void** extra) {
    return g_launch(function, x, y, z, 4096, 1, 1, shared, stream, parameters, extra);  // no block is that large
  };
  const auto submitter = inline_submitter(step, *session);
  session->begin_iteration();
  submitter->submit_step();
  try {
    session->finish();
    FAIL() << "a block of 4096 threads was launched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:0: submitting kernel '"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("CUDA error"), std::string::npos) << error.what();
  }
  spoilt.launch = g_launch;
  session->reset();
  iterate(*session, *submitter, {});
  EXPECT_TRUE(read_all(*session, step) == reference(step, 1));
}

// Writes to an address that is not there, and says what finish() makes of it. For a process of its own.
[[noreturn]] void lose_the_device() {
  GpuApi spoilt = *cuda_api(nullptr);
  g_launch = spoilt.launch;
  try {
    const auto device = open_gpu(spoilt, {});
    const Step step = random_step(2, 2);
    const Placement placement = natural(step);
    const auto session = device->prepare(step, placement, {});
    spoilt.launch = [](GpuFunction function, unsigned x, unsigned y, unsigned z, unsigned block, unsigned, unsigned,
                       unsigned shared, GpuStream stream, void** parameters, void** extra) {
      KernelArguments arguments = *static_cast<KernelArguments*>(parameters[0]);
      for (void*& operand : arguments.operands) operand = reinterpret_cast<void*>(0x1000);
      void* changed[] = {&arguments};
      return g_launch(function, x, y, z, block, 1, 1, shared, stream, changed, extra);
    };
    const auto submitter = inline_submitter(step, *session);
    for (int i = 0; i < 2; ++i) {
      try {
        session->begin_iteration();
        submitter->submit_step();
        session->finish();
      } catch (const Error& error) {
        std::fprintf(stderr, "%s | %s\n", error.what(), error.hint.c_str());
      }
    }
    session->take_spans();
  } catch (const Error& error) {
    std::fprintf(stderr, "unexpected: %s\n", error.what());
    std::_Exit(3);
  }
  std::exit(0);  // through every destructor
}

using CudaDeathTest = Cuda;

TEST_F(CudaDeathTest, an_illegal_access_is_told_and_survived) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(lose_the_device(), ::testing::ExitedWithCode(0), "CUDA_ERROR_ILLEGAL_ADDRESS.*lost to this process");
}

TEST_F(Cuda, any_priority_runs) {
  const DeviceInfo info = device().info();
  EXPECT_LT(info.lowest_priority, info.highest_priority);
  EXPECT_EQ(info.lowest_priority, 0);
  // Commands of any priority run; who is first is the hardware's business.
  StepBuilder builder(1);
  for (StreamId s = 0; s < 4; ++s)
    builder.launch("spin", {.stream = s, .priority = static_cast<std::int8_t>(s * 40 - 40)}, {.dims = {100'000, 8}},
                   {{builder.output(ElementType::f32, 8)}});
  const Step step = std::move(builder).seal(4);
  EXPECT_TRUE(run(device(), step, natural(step), {}) == reference(step, 1));
}

TEST_F(Cuda, info_and_telemetry) {
  const DeviceInfo info = device().info();
  EXPECT_EQ(info.name, "cuda:0");
  EXPECT_TRUE(info.is_gpu);
  EXPECT_FALSE(info.model.empty());
  EXPECT_NE(info.driver.find("CUDA "), std::string::npos) << info.driver;
  EXPECT_GT(info.multiprocessors.value.value_or(0), 0);
  EXPECT_GT(info.memory_bytes.value.value_or(0), 1u << 30);
  EXPECT_FALSE(info.hardware_queues.reason.empty());
  const Telemetry telemetry = device().telemetry();
  EXPECT_GT(telemetry.clock_mhz.value_or(1), 0);
  if (telemetry.clock_mhz && telemetry.max_clock_mhz) {
    EXPECT_LE(*telemetry.clock_mhz, *telemetry.max_clock_mhz);
  }
  EXPECT_GT(telemetry.power_w.value_or(1), 0);
}

TEST_F(Cuda, reports_stream_progress) { expect_progress(device()); }

TEST_F(Cuda, memory_use) {
  StepBuilder builder(1);
  const BufferId data = builder.output(ElementType::f32, 64 << 20);
  builder.launch("fill", {}, {.dims = {64 << 20, 0}}, {{data}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const MemoryUse use = device().prepare(step, placement, {})->memory();
  EXPECT_EQ(use.allocated_bytes, std::uint64_t{256} << 20);
  EXPECT_GE(use.reserved_bytes.value_or(UINT64_MAX), std::uint64_t{256} << 20);
}

}  // namespace
}  // namespace weir
