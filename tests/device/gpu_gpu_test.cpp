// The cuda device on a real GPU: every kernel, hazards, errors, priorities, events. Skipped where there is none.
#include "device/gpu.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

#include "base/error.h"
#include "device/cuda.h"
#include "device/gpu_cases.h"
#include "kernel/gemm.h"
#include "run/check.h"
#include "support/cuda_test.h"

namespace weir {
namespace {

using namespace gpu_cases;

class Cuda : public CudaTest {};

struct Case {
  std::string_view kernel;
  KernelShape shape;
};

constexpr ElementType kFloats[] = {ElementType::f32, ElementType::f16, ElementType::bf16};

constexpr Precision precision_of(ElementType type) {
  return type == ElementType::f16 ? Precision::fp16 : type == ElementType::bf16 ? Precision::bf16 : Precision::fp32;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto list = [&](std::string_view kernel, ElementType type, std::array<std::int64_t, kMaxDims> dims,
                        std::array<float, kMaxScalars> scalars = {}, std::optional<Precision> precision = {}) {
    all.push_back({kernel, {type, precision.value_or(precision_of(type)), dims, scalars}});
  };
  for (const ElementType type : kFloats) {
    for (const auto [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1}, {131, 67, 129}, {64, 256, 512}})
      for (std::int64_t flags = 0; flags < 4; ++flags) {
        list("gemm", type, {m, n, k, flags}, {1.0f, 0.0f});
        list("gemm", type, {m, n, k, flags}, {-0.5f, 1.5f});
        if (type == ElementType::f32) list("gemm", type, {m, n, k, flags}, {1.0f, 0.0f}, Precision::tf32);
        list("gemm", type, {m, n, k, flags | 5 << 8}, {1.0f, 0.0f});
        list("gemm", type, {m, n, k, flags | 2 << 8}, {-0.5f, 1.5f});
      }
    list("gemm", type, {512, 512, 64, gemm_flags(false, true, 32)}, {0.125f, 0.0f});  // scores of attention: verified
    for (const std::int64_t n : {1, 257, 16385, 1'000'003}) {
      using enum ChainOp;
      list("chain", type, {n, chain_ops({mul, add, abs, clamp})}, {1.5f, 0.5f, 0.0f, 2.0f});
      for (const ChainOp op : {mul, add, abs, clamp, relu}) list("chain", type, {n, chain_ops({op})}, {-0.5f, 0.75f});
      list("chain", type, {n, chain_ops({relu, square, square, add})}, {-0.75f});
      list("gelu", type, {n});
      list("gelu_backward", type, {n});
      list("adam", type, {n}, {1e-2f, 0.9f, 0.999f, 1e-8f});
    }
    for (const auto [rows, columns] :
         {std::array<std::int64_t, 2>{1, 1}, {7, 1}, {1, 1000}, {130, 257}, {3, 20011}, {4096, 33}}) {
      list("softmax", type, {rows, columns});
      list("layer_norm", type, {rows, columns}, {1e-5f});
      list("reduce", type, {rows, columns, 0});
      list("reduce", type, {rows, columns, 1});
      list("softmax", type, {rows, columns, 1});
      list("softmax_backward", type, {rows, columns});
      list("layer_norm_backward", type, {rows, columns}, {1e-5f});
      list("layer_norm_grad", type, {rows, columns});
      list("add", type, {rows, columns, 0}, {0.75f, -1.5f});
      list("add", type, {rows, columns, 1}, {1.0f, 1.25f});
    }
    // Wide loads everywhere, and rows of many kinds of triangle.
    list("softmax", type, {2 * 512, 512, 1});
    list("softmax_backward", type, {2 * 512, 512});
    list("layer_norm_backward", type, {512, 2048}, {1e-5f});
    list("layer_norm_grad", type, {2048, 2048});
    list("add", type, {1024, 2048, 1}, {1.0f, 1.0f});
    for (const auto [groups, parts, count, stride] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                                                      {1, 7, 1, 1},
                                                      {2, 4, 1'000'000, 1'000'000},
                                                      {3, 2, 20011, 20011},
                                                      {5, 33, 130, 131},
                                                      {1000, 4, 3, 9},
                                                      {16, 1000, 256, 260},
                                                      {2, 1000, 257, 260},
                                                      {4, 5, 9, 2}})
      list("sum_rows", type, {groups, parts, count, stride}, {0.25f});
  }
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32}) {
    for (const auto [count, width] :
         {std::array<std::int64_t, 2>{1, 1}, {100, 33}, {40, 1000}, {3, 20000}, {70'000, 1}}) {
      list("gather", type, {count, width, count});
      list("scatter", type, {count, width, count});
    }
    for (const std::int64_t n : {1, 255, 40001, 3'000'000}) {
      list("copy", type, {n});
      list("fill", type, {n, 0, 0}, {-3.7f});
      list("fill", type, {n, 1, 99}, {1000.0f, 0.1f});
    }
    for (const auto [batch, rows, columns, width] : {std::array<std::int64_t, 4>{1, 1, 1, 1},
                                                     {1, 300, 131, 1},
                                                     {3, 65, 64, 1},
                                                     {2, 1, 5, 3},
                                                     {2, 512, 12, 64},
                                                     {3, 7, 1, 20000},
                                                     {1, 129, 130, 2},
                                                     {1, 2048, 1024, 1}})
      list("transpose", type, {batch, rows, columns, width});
  }
  list("spin", ElementType::f32, {20'000, 5});
  return all;
}

// One launch over operands of exactly its extents.
Step step_of(const Case& test) {
  const Kernel& body = kernel(kernel_named(test.kernel));
  const auto extents = body.extents(test.shape);
  const std::string_view modes = body.operands(test.shape);
  StepBuilder builder(7);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const auto count = static_cast<std::uint64_t>(extents[i]);
    const ElementType type = body.type_of(test.shape, i);
    const bool is_square = test.kernel == "adam" && i == 3;  // no data can make it negative
    if (modes[i] == 'w') {
      operands.push_back({builder.output(type, count)});
    } else if (type == ElementType::i32) {
      operands.push_back({builder.indices(count)});
    } else {
      operands.push_back({builder.uniform(type, count, 2.0f, is_square ? 2.25f : 0.25f)});
    }
  }
  builder.launch(test.kernel, {}, test.shape, operands);
  return std::move(builder).seal(1);
}

TEST_F(Cuda, every_kernel_computes_what_its_reference_does) {
  for (const Case& test : cases()) {
    const Step step = step_of(test);
    const Placement placement = natural(step);
    const auto session = device().prepare(step, placement, {});
    iterate(*session, *inline_submitter(step, *session), {});
    const CheckReport report = check_outputs(step, *session);
    std::string dims;
    for (const std::int64_t dim : test.shape.dims) dims += ' ' + std::to_string(dim);
    EXPECT_EQ(report.status, CheckReport::Status::passed)
        << test.kernel << ' ' << name_of(test.shape.type) << ' ' << name_of(test.shape.precision) << dims << ": "
        << report.reason;
  }
}

TEST_F(Cuda, any_order_gives_the_same_buffers) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) expect_same_buffers(device(), seed);
}

TEST_F(Cuda, host_functions_and_graphs_take_turns) { expect_round_trips(device()); }

TEST_F(Cuda, initial_contents) { expect_initial_contents(device()); }

TEST_F(Cuda, timeline_follows_edges) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) expect_sane_timeline(device(), seed);
}

TEST_F(Cuda, spans_outlive_the_ring_of_events) {
  expect_spans_of_many_iterations(device(), "inline", 700);
  expect_spans_of_many_iterations(device(), "threads:2", 700);
  expect_spans_of_many_iterations(device(), "graph", 700);
}

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
  EXPECT_EXIT(lose_the_device(), testing::ExitedWithCode(0), "CUDA_ERROR_ILLEGAL_ADDRESS.*lost to this process");
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
