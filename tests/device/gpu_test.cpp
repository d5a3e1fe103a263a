// The GPU device over a fake table, beyond what the conformance table examines: errors, memory, graphs, priorities.
#include "device/gpu/gpu.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/fake_gpu.h"
#include "device/gpu_cases.h"
#include "kernel/gemm.h"
#include "support/message_of.h"
#include "support/text.h"

namespace weir {
namespace {

using namespace gpu_cases;

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override { fake_gpu::reset({}); }
  void TearDown() override { EXPECT_EQ(fake_gpu::leaks(), ""); }
  std::unique_ptr<Device> open(const fake_gpu::Settings& settings = {}) {
    fake_gpu::reset(settings);
    return open_gpu(fake_gpu::api(), {});
  }
};

TEST_F(Gpu, timeline_follows_edges) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) expect_sane_timeline(*open({.seed = seed}), seed);
}

TEST_F(Gpu, gemm_runs_on_its_stream) {
  const auto device = open();
  StepBuilder builder(1);
  for (int s = 0; s < 3; ++s) {
    const BufferId a = builder.uniform(ElementType::f32, 30), b = builder.uniform(ElementType::f32, 42);
    const BufferId c = builder.output(ElementType::f32, 35);
    const KernelShape shape{.dims = {5, 7, 6, s}, .scalars = {1, 0}};
    builder.launch("gemm", {.stream = static_cast<StreamId>(s)}, shape, {{a}, {b}, {c}});
  }
  const Step step = std::move(builder).seal(3);
  for (const char* submit : {"inline", "threads:3", "graph"})
    EXPECT_TRUE(run(*device, step, natural(step), {submit, false, 2}) == reference(step, 1)) << submit;
}

TEST_F(Gpu, gemm_runs_all_of_a_batch) {
  const auto device = open();
  StepBuilder builder(1);
  const BufferId a = builder.uniform(ElementType::f32, 3 * 30), b = builder.uniform(ElementType::f32, 3 * 42);
  const BufferId c = builder.output(ElementType::f32, 3 * 35);
  builder.launch("gemm", {}, {.dims = {5, 7, 6, gemm_flags(true, false, 3)}, .scalars = {1, 0}}, {{a}, {b}, {c}});
  const Step step = std::move(builder).seal(1);
  EXPECT_TRUE(run(*device, step, natural(step), {}) == reference(step, 1));
}

TEST_F(Gpu, says_what_a_missing_library_is_needed_for) {
  const auto device = open({.has_blas = false});
  StepBuilder builder(1);
  const BufferId a = builder.uniform(ElementType::f32, 4), c = builder.output(ElementType::f32, 4);
  builder.launch("gemm", {}, {.dims = {2, 2, 2}, .scalars = {1, 0}}, {{a}, {a}, {c}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  EXPECT_TRUE(has(message_of([&] { device->prepare(step, placement, {}); }), "there is no fake BLAS"));
}

// A host function on each stream.
Step host_step(int streams) {
  StepBuilder builder(1);
  for (int s = 0; s < streams; ++s) {
    const BufferId host = builder.host(ElementType::f32, 40'000, Init::constant);
    builder.launch_on_host("fill", {.stream = static_cast<StreamId>(s)}, {.dims = {40'000}, .scalars = {3}}, {{host}});
  }
  return std::move(builder).seal(streams);
}

TEST_F(Gpu, without_host_functions_it_says_so) {
  const auto device = open({.has_host_functions = false});
  const Step step = host_step(1);
  const Placement placement = natural(step);
  EXPECT_TRUE(has(message_of([&] { device->prepare(step, placement, {}); }), "fake:0: this workload runs host"));
}

TEST_F(Gpu, each_segment_is_a_graph_but_a_lone_host_function) {
  const auto device = open();
  StepBuilder builder(1);
  const BufferId data = builder.uniform(ElementType::f32, 8), host = builder.host(ElementType::f32, 8, Init::constant);
  const KernelShape add{.dims = {8, chain_ops({ChainOp::add})}, .scalars = {1}};
  builder.launch("chain", {.stream = 1}, add, {{data}, {data}});
  builder.copy({.stream = 0}, {data}, {host});
  builder.cut();
  builder.launch_on_host("chain", {.stream = 2}, add, {{host}, {host}});
  builder.cut();
  builder.copy({.stream = 1}, {host}, {data});
  builder.launch_on_host("chain", {.stream = 0}, add, {{host}, {host}});
  const Step step = std::move(builder).seal(3);
  EXPECT_TRUE(run(*device, step, natural(step), {"graph", true, 5}) == reference(step, 5));
  EXPECT_EQ(fake_gpu::graph_launches(), 2 * 5);
}

TEST_F(Gpu, a_refused_host_function_is_named) {
  GpuApi spoilt = fake_gpu::api();
  const auto device = open_gpu(spoilt, {});
  const Step step = host_step(1);
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {});
  spoilt.launch_host = [](GpuStream, GpuHostCall*) { return 3; };
  session->begin_iteration();
  inline_submitter(step, *session)->submit_step();
  const std::string message = message_of([&] { session->finish(); });
  EXPECT_TRUE(has(message, "submitting host function 'fill' (command 0, stream 0) failed: fake error 3")) << message;
}

TEST_F(Gpu, out_of_memory_says_how_much) {
  const auto device = open({.memory_bytes = 1 << 20});
  StepBuilder builder(1);
  const BufferId big = builder.output(ElementType::f32, 3 << 20);
  builder.launch("fill", {}, {.dims = {3 << 20, 0}}, {{big}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const std::string message = message_of([&] { device->prepare(step, placement, {}); });
  EXPECT_TRUE(has(message, "12.0 MiB needed")) << message;
  EXPECT_TRUE(has(message, "1.00 MiB of 1.00 MiB free")) << message;
  EXPECT_TRUE(has(message, "--scale")) << message;
}

TEST_F(Gpu, memory_use) {
  const auto device = open();
  const Step step = random_step(1, 2);
  const Placement placement = natural(step);
  const MemoryUse use = device->prepare(step, placement, {})->memory();
  EXPECT_EQ(use.allocated_bytes, step.size_bytes(Place::device));
  EXPECT_EQ(use.reserved_bytes, step.size_bytes(Place::device));
  EXPECT_EQ(use.peak_bytes, use.reserved_bytes);
}

TEST_F(Gpu, a_refused_launch_is_thrown_by_finish) {
  const Step step = random_step(2, 2);
  const Placement placement = natural(step);
  for (const char* submit : {"inline", "threads:2", "channel:mpsc:2", "channel:mpsc:2x2"}) {
    const auto device = open();
    const SubmitChoice choice = parse_submit(submit, 2);
    auto session = device->prepare(step, placement, {});
    const auto submitter = make_submitter(choice, step, placement, *session);
    fake_gpu::reset({.fail_launch = 3, .error = 719});
    session->begin_iteration();
    submitter->submit_step();
    const std::string message = message_of([&] { session->finish(); });
    EXPECT_TRUE(has(message, "fake:0: submitting kernel '")) << message;
    EXPECT_TRUE(has(message, "(command ")) << message;
    EXPECT_TRUE(has(message, "fake error 719")) << message;
    // The latch is open again, and the device still works.
    session->reset();
    iterate(*session, *submitter, {});
    EXPECT_TRUE(read_all(*session, step) == reference(step, 1));
  }
}

TEST_F(Gpu, a_kernel_that_fails_while_it_runs_loses_the_device) {
  const auto device = open();
  const Step step = random_step(2, 2);
  const Placement placement = natural(step);
  for (const char* submit : {"inline", "graph", "channel:mpsc:2", "channel:lanes:2x2"}) {
    fake_gpu::reset({});
    const SubmitChoice choice = parse_submit(submit, 2);
    const auto session = device->prepare(step, placement, {.mode = choice.mode});
    const auto submitter = make_submitter(choice, step, placement, *session);
    fake_gpu::reset({.fail_run = 5, .error = 700});
    session->begin_iteration();
    submitter->submit_step();
    const std::string message = message_of([&] { session->finish(); });
    EXPECT_TRUE(has(message, "fake error 700")) << message;
    EXPECT_TRUE(has(message, "lost to this process")) << message;
    // Every later call fails too; none of them may crash, hang or throw anything but Error.
    session->begin_iteration();
    submitter->submit_step();
    EXPECT_NE(message_of([&] { session->finish(); }), "");
    EXPECT_NE(message_of([&] { session->reset(); }), "");
    for (const IterationSpan& span : session->take_spans()) EXPECT_EQ(span.ended_ns, kNoTime);
  }
}

TEST_F(Gpu, streams_are_as_urgent_as_their_most_urgent_command) {
  const auto device = open();
  EXPECT_EQ(device->info().lowest_priority, 0);
  EXPECT_EQ(device->info().highest_priority, 5);
  StepBuilder builder(1);
  const std::int8_t priorities[] = {0, 2, 1, 100, -7};
  const StreamId streams[] = {0, 1, 1, 2, 3};
  for (std::size_t i = 0; i < 5; ++i)
    builder.launch("fill", {.stream = streams[i], .priority = priorities[i]}, {.dims = {4, 0}},
                   {{builder.output(ElementType::f32, 4)}});
  const Step step = std::move(builder).seal(4);
  const Placement placement = natural(step);
  device->prepare(step, placement, {});
  EXPECT_EQ(std::vector<int>(fake_gpu::priorities().begin(), fake_gpu::priorities().begin() + 4),
            (std::vector<int>{0, -2, -5, 0}));
}

TEST_F(Gpu, without_graphs_it_says_so) {
  const auto device = open({.has_graphs = false});
  EXPECT_FALSE(device->info().graphs);
  const Step step = random_step(1, 1);
  const Placement placement = natural(step);
  EXPECT_TRUE(has(message_of([&] { device->prepare(step, placement, {.mode = SubmitMode::graph}); }), "submit graph"));
}

TEST_F(Gpu, a_traced_graph_says_why_it_has_no_timeline) {
  const auto device = open();
  const Step step = random_step(1, 2);
  const Placement placement = natural(step);
  const auto session =
      device->prepare(step, placement, {.mode = SubmitMode::graph, .is_traced = true, .trace_iterations = 1});
  iterate(*session, *inline_submitter(step, *session), {});
  EXPECT_TRUE(session->timeline().spans.empty());
  EXPECT_TRUE(has(session->timeline().source, "graph"));
}

TEST_F(Gpu, a_large_trace_keeps_fewer_iterations) {
  const auto device = open();
  StepBuilder builder(1);
  const BufferId data = builder.output(ElementType::f32, 1);
  for (int i = 0; i < 20'000; ++i) builder.launch("fill", {}, {.dims = {1, 0}}, {{data}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {.is_traced = true, .trace_iterations = 10});
  iterate(*session, *inline_submitter(step, *session), {.iterations = 4});
  EXPECT_EQ(session->timeline().spans.size(), 2u * 20'000);
}

// By stream, in the order of the step, however it is submitted.
TEST_F(Gpu, counts_what_has_ended) {
  const Step step = random_step(4, 3, {.has_host = true, .has_cuts = true});
  const Placement placement = natural(step);
  std::vector<std::uint64_t> counts(3, 0);
  for (const StreamId stream : placement.stream_of) ++counts[stream];
  for (const bool has_writes : {true, false}) {
    for (const char* submit : {"inline", "threads:2", "graph"}) {
      const auto device = open({.has_writes = has_writes});
      const SubmitChoice choice = parse_submit(submit, 3);
      SessionOptions options{.mode = choice.mode, .host_threads = choice.host_threads(), .is_pipelined = true};
      EXPECT_TRUE(device->prepare(step, placement, options)->progress().empty()) << "nobody asked";
      options.follows_progress = true;
      const auto session = device->prepare(step, placement, options);
      const auto submitter = make_submitter(choice, step, placement, *session);
      for (std::uint64_t i = 1; i <= 5; ++i) {
        const auto before = session->progress();
        session->begin_iteration();
        submitter->submit_step();
        const auto running = session->progress();
        if (i % 2 == 0) session->finish();
        const auto after = session->progress();
        ASSERT_EQ(after.size(), 3u);
        for (std::size_t s = 0; s < 3; ++s) {
          EXPECT_EQ(running[s].submitted, i * counts[s]) << submit;
          EXPECT_GE(running[s].ended, before[s].ended) << submit;
          EXPECT_LE(running[s].ended, running[s].submitted) << submit;
          EXPECT_EQ(running[s].is_exact, has_writes && choice.mode == SubmitMode::eager) << submit;
          if (i % 2 == 0) {
            EXPECT_EQ(after[s].ended, i * counts[s]) << submit;
          }
        }
      }
      session->finish();
    }
  }
}

TEST_F(Gpu, refuses_devices_that_are_not_there) {
  fake_gpu::reset({.device_count = 2});
  EXPECT_EQ(find_gpus(fake_gpu::api()).names, (std::vector<std::string>{"fake:0", "fake:1"}));
  EXPECT_TRUE(has(message_of([] { open_gpu(fake_gpu::api(), {.index = 3}); }),
                  "device fake:3: this machine has fake:0 to fake:1"));
  fake_gpu::reset({.device_count = 0});
  EXPECT_TRUE(find_gpus(fake_gpu::api()).names.empty());
  EXPECT_TRUE(has(find_gpus(fake_gpu::api()).reason, "fake error 100"));
  EXPECT_TRUE(has(message_of([] { open_gpu(fake_gpu::api(), {}); }), "no device"));
}

// Launches and records cost nothing here, so that whatever allocates is ours.
TEST_F(Gpu, submit_allocates_nothing) {
  GpuApi quiet = fake_gpu::api();
  const auto device = open_gpu(quiet, {});
  const Step step = random_step(6, 3, {.has_host = true});
  const Placement placement = natural(step);
  for (const bool is_traced : {false, true}) {
    const auto session = device->prepare(
        step, placement,
        {.is_pipelined = true, .is_traced = is_traced, .trace_iterations = 2, .follows_progress = is_traced});
    const auto submitter = inline_submitter(step, *session);
    quiet.launch = [](auto...) { return 0; };
    quiet.launch_host = [](GpuStream, GpuHostCall*) { return 0; };
    quiet.event_record = [](auto...) { return 0; };
    quiet.stream_wait = [](auto...) { return 0; };
    quiet.stream_write = [](auto...) { return 0; };
    quiet.copy_on_device = quiet.copy_any = [](auto...) { return 0; };
    quiet.copy_to_device = [](auto...) { return 0; };
    quiet.copy_to_host = [](auto...) { return 0; };
    const std::uint64_t before = allocation_count();
    for (int i = 0; i < 300; ++i) {
      session->begin_iteration();
      submitter->submit_step();
    }
    EXPECT_EQ(allocation_count(), before);
    quiet = fake_gpu::api();
  }
}

}  // namespace
}  // namespace weir
