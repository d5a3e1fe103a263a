// The opencl device on whatever driver there is (PoCL in CI): hazards, host functions, graphs, contents, facts,
// products.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/device.h"
#include "device/gpu_cases.h"
#include "device/opencl/blas.h"
#include "device/region_cases.h"
#include "kernel/gemm.h"
#include "run/check.h"
#include "support/text.h"

namespace weir {
namespace {

using namespace gpu_cases;

// Has the first OpenCL device there is, or a reason to skip.
class Opencl : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // Tests run in the build folder; compiled kernels are kept there from run to run.
    setenv("POCL_CACHE_DIR", (std::filesystem::current_path() / "pocl_cache").c_str(), 0);
    std::filesystem::create_directories(std::getenv("POCL_CACHE_DIR"));
  }
  void SetUp() override {
    for (const DeviceType& type : device_types()) {
      if (type.name != "opencl") continue;
      const DeviceType::Found found = type.find();
      if (found.names.empty()) GTEST_SKIP() << found.reason;
      device_ = open_device(found.names.front(), {});
      return;
    }
    FAIL() << "the list of devices has no opencl";
  }
  Device& device() { return *device_; }
  void close_device() { device_.reset(); }

 private:
  std::unique_ptr<Device> device_;
};

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint;
  }
  return "nothing was thrown";
}

TEST_F(Opencl, tells_what_it_is) {
  const DeviceInfo info = device().info();
  EXPECT_EQ(info.name, "opencl:0");
  EXPECT_EQ(info.backend, "opencl");
  EXPECT_FALSE(info.model.empty());
  EXPECT_TRUE(has(info.driver, "OpenCL")) << info.driver;
  EXPECT_FALSE(info.hardware_queues.value);
  EXPECT_FALSE(info.hardware_queues.reason.empty());
  EXPECT_GT(info.multiprocessors.value.value_or(0), 0);
  for (const Capability& capability :
       {info.graphs, info.priorities, info.host_functions, info.host_memory, info.kernel_clock, info.compute_units})
    EXPECT_NE(capability.is_offered, !capability.reason.empty()) << capability.reason;
}

TEST_F(Opencl, any_way_to_submit_gives_the_same_buffers) {
  if (!device().info().graphs) GTEST_SKIP() << device().info().graphs.reason;
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 6u})
    expect_same_buffers(device(), seed);  // even: with host functions
}

TEST_F(Opencl, host_functions_keep_their_place_in_streams) {
  for (const std::uint64_t seed : {2u, 4u}) {
    const Step step = random_step(seed, 4, {.has_host = true});
    for (const char* submit : {"inline", "threads:2", "threads:4", "channel:mpsc:3"})
      for (const bool is_pipelined : {false, true})
        EXPECT_TRUE(run(device(), step, natural(step), {submit, is_pipelined, 5}) == reference(step, 5))
            << "seed " << seed << ", " << submit << (is_pipelined ? ", pipelined" : "");
  }
}

TEST_F(Opencl, host_functions_run_between_command_buffers) {
  if (!device().info().graphs) GTEST_SKIP() << device().info().graphs.reason;
  expect_round_trips(device());
}

TEST_F(Opencl, buffers_begin_with_what_the_step_says) { expect_initial_contents(device()); }

TEST_F(Opencl, spans_of_more_iterations_than_may_be_in_flight) {
  expect_spans_of_many_iterations(device(), "inline", 300);
  expect_spans_of_many_iterations(device(), "threads:4", 100);
  if (device().info().graphs) expect_spans_of_many_iterations(device(), "graph", 200);
}

TEST_F(Opencl, without_marks_there_are_no_spans_and_the_same_buffers) {
  const Step step = random_step(7, 3);
  const Placement placement = natural(step);
  const auto session = device().prepare(step, placement, {.is_pipelined = true, .marks_iterations = false});
  iterate(*session, *inline_submitter(step, *session), {.is_pipelined = true, .iterations = 200});
  EXPECT_TRUE(session->take_spans().empty());
  EXPECT_TRUE(read_all(*session, step) == reference(step, 200));
}

TEST_F(Opencl, submitting_allocates_nothing_of_ours) {
  const Step step = random_step(5, 4);
  const Placement placement = natural(step);
  const auto session = device().prepare(step, placement, {.is_pipelined = true});
  const auto submitter = inline_submitter(step, *session);
  iterate(*session, *submitter, {.is_pipelined = true, .iterations = 100});
  const std::uint64_t before = allocation_count();
  iterate(*session, *submitter, {.is_pipelined = true, .iterations = 10});
  EXPECT_EQ(allocation_count() - before, 0u);
}

// Of these a driver need not say when they were launched, and gaps beside them are not exact: host functions, copies
// within host memory where the driver cannot do them, and CLBlast's products, which begin with a marker of ours.
bool is_launched_by_us(const Step& step, CommandId id, bool has_host_memory) {
  const Command& command = step.commands()[id];
  const auto is_on_host = [&](const Access& access) { return step.buffers()[access.buffer].place == Place::host; };
  switch (command.kind) {
    case CommandKind::kernel:
      return kernel(command.kernel).geometry == nullptr && command.shape.type == ElementType::f32 &&
             OpenclBlas::open() != nullptr;
    case CommandKind::copy:
      return !has_host_memory && is_on_host(step.accesses(id)[0]) && is_on_host(step.accesses(id)[1]);
    default:
      return true;
  }
}

TEST_F(Opencl, the_timeline_holds_every_hop_in_order) {
  for (const bool has_host : {false, true}) {
    const Step step = random_step(4, 3, {.has_host = has_host});
    const Placement placement = natural(step);
    const auto session = device().prepare(step, placement, {.is_traced = true, .trace_iterations = 2});
    iterate(*session, *inline_submitter(step, *session), {.iterations = 3});
    const Timeline timeline = session->timeline();
    const std::size_t count = step.commands().size();
    ASSERT_EQ(timeline.spans.size(), 2 * count);
    const bool has_host_memory = device().info().host_memory.is_offered;
    const auto is_ours = [&](const Span& span) { return is_launched_by_us(step, span.command, has_host_memory); };
    EXPECT_EQ(timeline.has_exact_gaps, std::ranges::none_of(timeline.spans, is_ours));
    EXPECT_GT(timeline.clock_error_ns, 0);
    const auto slack = static_cast<std::int64_t>(2 * timeline.clock_error_ns) + 1000;
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
      const Span& span = timeline.spans[i];
      ASSERT_EQ(span.command, i % count);
      EXPECT_EQ(span.iteration, 1 + i / count);
      EXPECT_EQ(span.stream, placement.stream_of[span.command]);
      ASSERT_NE(span.started_ns, kNoTime) << span.command;
      EXPECT_LE(span.submitted_ns, span.accepted_ns);
      EXPECT_LE(span.submitted_ns, span.started_ns + slack);
      EXPECT_LE(span.started_ns, span.ended_ns);
      if (!is_ours(span)) {
        ASSERT_NE(span.launched_ns, kNoTime);
      }
      if (span.launched_ns != kNoTime) {
        EXPECT_LE(span.launched_ns, span.started_ns);
      }
      for (const CommandId earlier : step.predecessors(span.command))
        EXPECT_LE(timeline.spans[i - span.command + earlier].ended_ns, span.started_ns + slack)
            << earlier << " -> " << span.command;
    }
  }
}

TEST_F(Opencl, an_untraced_pass_says_that_it_has_no_timeline) {
  const Step step = random_step(1, 2);
  const Placement placement = natural(step);
  const auto session = device().prepare(step, placement, {});
  EXPECT_TRUE(session->timeline().spans.empty());
  EXPECT_TRUE(session->timeline().source.starts_with("none")) << session->timeline().source;
}

// CLBlast does those in fp32 where it is installed; the others, and those in graphs, are our own kernel's.
TEST_F(Opencl, products_agree_with_the_reference) {
  for (const char* submit : {"inline", "graph"}) {
    if (std::string_view(submit) == "graph" && !device().info().graphs) continue;
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      StepBuilder builder(11);
      const Precision precision = type == ElementType::f16    ? Precision::fp16
                                  : type == ElementType::bf16 ? Precision::bf16
                                                              : Precision::fp32;
      for (std::int64_t flags = 0; flags < 4; ++flags) {
        for (const auto& [alpha, beta, batch] : {std::tuple{1.0f, 0.0f, 1}, {-0.5f, 1.5f, 3}}) {
          constexpr std::int64_t m = 37, n = 67, k = 129;
          const auto count = [&](std::int64_t elements) { return static_cast<std::uint64_t>(elements * batch); };
          // Not at a buffer's beginning: offsets count too.
          const BufferId a = builder.uniform(type, count(m * k) + 8), b = builder.uniform(type, count(k * n));
          const BufferId c = builder.uniform(type, count(m * n));
          builder.launch("gemm", {},
                         {type, precision, {m, n, k, gemm_flags(flags & 1, flags & 2, batch)}, {alpha, beta}},
                         {{a, 8, count(m * k)}, {b}, {c}});
        }
      }
      const Step step = std::move(builder).seal(1);
      const Placement placement = natural(step);
      const SubmitChoice choice = parse_submit(submit, 1);
      const auto session = device().prepare(step, placement, {.mode = choice.mode});
      iterate(*session, *make_submitter(choice, step, placement, *session), {});
      const CheckReport report = check_outputs(step, *session);
      EXPECT_EQ(report.status, CheckReport::Status::passed) << submit << " " << name_of(type) << ": " << report.reason;
    }
  }
}

TEST_F(Opencl, memory_outside_of_sessions_is_written_and_read) {
  for (const Place place : {Place::device, Place::host}) {
    const auto memory = device().memory(place);
    std::byte* const at = memory->allocate(256);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
    const std::vector<std::byte> out(256, std::byte{7});
    std::vector<std::byte> in(256);
    memory->write(at, out);
    memory->read(at, in);
    EXPECT_EQ(in, out);
    memory->release(at);
  }
}

TEST_F(Opencl, a_session_outlives_its_device) {
  const Step step = random_step(1, 2);
  const Placement placement = natural(step);
  const auto session = device().prepare(step, placement, {});
  close_device();
  iterate(*session, *inline_submitter(step, *session), {});
  EXPECT_TRUE(read_all(*session, step) == reference(step, 1));
}

TEST_F(Opencl, a_buffer_that_does_not_fit_is_rejected) {
  StepBuilder builder(1);
  const BufferId huge = builder.output(ElementType::f32, std::uint64_t{1} << 50);
  builder.launch("fill", {}, {.dims = {64, 0}, .scalars = {9}}, {{huge, 0, 64}});
  const Step step = std::move(builder).seal(1);
  const Placement placement = natural(step);
  const std::string text = error_of([&] { device().prepare(step, placement, {}); });
  EXPECT_TRUE(has(text, "out of memory") && has(text, "--scale")) << text;
}

TEST_F(Opencl, a_number_that_is_not_there_is_rejected) {
  const std::string text = error_of([] { open_device("opencl:999", {}); });
  EXPECT_TRUE(has(text, "opencl:999") && has(text, "this machine has opencl:0")) << text;
}

TEST_F(Opencl, regions_are_compiled_once) {
  const std::string name = device().info().name;
  close_device();
  // Its context lives as long as the program, and with it what is compiled.
  region_cases::expect_a_cache([&] { return open_device(name, {}); }, false);
}

}  // namespace
}  // namespace weir
