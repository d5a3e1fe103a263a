// The traced pass with a profiler, over the fake table: joining records with commands, and what happens when they do
// not fit.
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/fake_gpu.h"
#include "device/gpu/gpu.h"
#include "device/gpu_cases.h"
#include "kernel/gemm.h"
#include "support/text.h"

namespace weir {
namespace {

using namespace gpu_cases;

class GpuActivityTrace : public ::testing::Test {
 protected:
  void SetUp() override { fake_gpu::reset({}); }
  void TearDown() override {
    EXPECT_EQ(fake_gpu::activity_starts(), fake_gpu::activity_stops());
    EXPECT_EQ(fake_gpu::leaks(), "");
  }
  std::unique_ptr<Device> open(fake_gpu::Settings settings = {}) {
    settings.has_activity = true;
    fake_gpu::reset(settings);
    return open_gpu(fake_gpu::api(), {});
  }
  // Three iterations of a step with kernels, copies and host functions on three streams, two of them kept.
  Timeline trace(const fake_gpu::Settings& settings = {}) {
    const auto device = open(settings);
    const Placement placement = natural(step_);
    const auto session = device->prepare(step_, placement, {.is_traced = true, .trace_iterations = 2});
    iterate(*session, *inline_submitter(step_, *session), {.iterations = 3});
    return session->timeline();
  }
  const Step& step() const { return step_; }
  bool is_host(const Span& span) const { return step_.commands()[span.command].kind == CommandKind::host; }

 private:
  Step step_ = random_step(2, 3, {.has_host = true});
};

TEST_F(GpuActivityTrace, follows_edges) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) expect_sane_timeline(*open({.seed = seed}), seed);
}

TEST_F(GpuActivityTrace, submits_what_an_untraced_pass_does) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto device = open({.seed = seed});
    const Step step = random_step(seed, 4, {.has_host = true});
    const Placement placement = natural(step);
    const auto session = device->prepare(step, placement, {.is_traced = true, .trace_iterations = 2});
    iterate(*session, *inline_submitter(step, *session), {.iterations = 3});
    EXPECT_TRUE(read_all(*session, step) == reference(step, 3)) << seed;
  }
}

TEST_F(GpuActivityTrace, keeps_the_channel_of_kernels_and_copies_apart) {
  const Timeline timeline = trace();
  EXPECT_TRUE(timeline.has_exact_gaps);
  EXPECT_EQ(timeline.source, "activity records of fake profiler 1");
  for (const Span& span : timeline.spans) {
    const CommandKind kind = step().commands()[span.command].kind;
    if (kind == CommandKind::host) {
      EXPECT_EQ(span.queue, kNoQueue);
    } else if (kind == CommandKind::copy) {
      EXPECT_EQ(span.queue, kCopyQueues);
    } else {
      EXPECT_EQ(span.queue, span.stream);
    }
    EXPECT_GE(span.started_ns, span.submitted_ns);
  }
  EXPECT_EQ(timeline.clock_error_ns, 0);
}

TEST_F(GpuActivityTrace, notes_when_the_driver_had_a_command) {
  for (const Span& span : trace().spans) EXPECT_GE(span.accepted_ns, span.submitted_ns);
}

TEST_F(GpuActivityTrace, a_lost_record_takes_its_stream_away_and_is_told) {
  for (const bool counts_dropped : {false, true}) {
    const Timeline timeline = trace({.drop_record = 30, .counts_dropped = counts_dropped});
    EXPECT_EQ(has(timeline.source, "1 of them were dropped"), counts_dropped) << timeline.source;
    EXPECT_TRUE(has(timeline.source, "1 of 3 streams have no times")) << timeline.source;
    std::set<int> with, without;
    for (const Span& span : timeline.spans)
      if (!is_host(span)) (span.started_ns == kNoTime ? without : with).insert(span.stream);
    EXPECT_EQ(with.size(), 2u);
    EXPECT_EQ(without.size(), 1u);
    for (const int stream : without) EXPECT_FALSE(with.contains(stream));
    for (const Span& span : timeline.spans) {
      EXPECT_NE(span.submitted_ns, kNoTime);
      if (span.started_ns == kNoTime) {
        EXPECT_EQ(span.queue, kNoQueue);
      }
      if (is_host(span)) {
        EXPECT_NE(span.started_ns, kNoTime);
      }
    }
  }
}

TEST_F(GpuActivityTrace, an_incomplete_record_costs_one_span) {
  const std::size_t first_kept = step().commands().size() + 5;
  const Timeline timeline = trace({.incomplete_record = static_cast<int>(first_kept)});
  EXPECT_EQ(timeline.source, "activity records of fake profiler 1");
  EXPECT_EQ(std::count_if(timeline.spans.begin(), timeline.spans.end(),
                          [](const Span& span) { return span.started_ns == kNoTime; }),
            1);
}

TEST_F(GpuActivityTrace, a_record_of_another_kind_takes_its_stream_away) {
  const Timeline timeline = trace({.swaps_kinds = true});
  EXPECT_TRUE(has(timeline.source, "has a record of another kind")) << timeline.source;
  std::set<int> with_copies;
  for (const Command& command : step().commands())
    if (command.kind == CommandKind::copy) with_copies.insert(command.stream);
  EXPECT_FALSE(with_copies.empty());
  for (const Span& span : timeline.spans)
    if (!is_host(span)) {
      EXPECT_EQ(span.started_ns == kNoTime, with_copies.contains(span.stream));
    }
}

TEST_F(GpuActivityTrace, falls_back_to_events_with_a_reason) {
  const Timeline without = [&] {
    fake_gpu::reset({});
    const auto device = open_gpu(fake_gpu::api(), {});
    const Placement placement = natural(step());
    const auto session = device->prepare(step(), placement, {.is_traced = true, .trace_iterations = 1});
    iterate(*session, *inline_submitter(step(), *session), {});
    return session->timeline();
  }();
  EXPECT_TRUE(has(without.source, "device events")) << without.source;
  EXPECT_TRUE(has(without.source, "there is no fake profiler")) << without.source;

  const Timeline broken = trace({.activity_error = 15});
  EXPECT_FALSE(broken.has_exact_gaps);
  EXPECT_TRUE(has(broken.source, "fake profiler 1 does not start: fake profiler's error 15")) << broken.source;
  for (const Span& span : broken.spans) EXPECT_NE(span.started_ns, kNoTime);
}

TEST_F(GpuActivityTrace, one_session_at_a_time_has_the_profiler) {
  const auto device = open();
  const Placement placement = natural(step());
  const SessionOptions options{.is_traced = true, .trace_iterations = 1};
  auto first = device->prepare(step(), placement, options);
  const auto second = device->prepare(step(), placement, options);
  for (Session* session : {first.get(), second.get()}) iterate(*session, *inline_submitter(step(), *session), {});
  EXPECT_TRUE(first->timeline().has_exact_gaps);
  EXPECT_FALSE(second->timeline().has_exact_gaps);
  first.reset();
  const auto third = device->prepare(step(), placement, options);
  iterate(*third, *inline_submitter(step(), *third), {});
  EXPECT_TRUE(third->timeline().has_exact_gaps);
}

// Products of 8 x 8 matrices, and a kernel behind each.
Step products() {
  StepBuilder builder(3);
  for (StreamId s = 0; s < 2; ++s) {
    const BufferId a = builder.uniform(ElementType::f32, 64), b = builder.uniform(ElementType::f32, 64);
    const BufferId c = builder.output(ElementType::f32, 64);
    builder.launch("gemm", {.stream = s}, {.dims = {8, 8, 8, gemm_flags(false, false, 1)}, .scalars = {1, 0}},
                   {{a}, {b}, {c}});
    builder.launch("chain", {.stream = s}, {.dims = {64, chain_ops({ChainOp::add})}, .scalars = {0.5f}}, {{c}, {c}});
  }
  return std::move(builder).seal(2);
}

TEST_F(GpuActivityTrace, a_recorded_product_is_all_its_kernels) {
  const auto device = open({.has_recording = true});
  const Step step = products();
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {.is_traced = true, .trace_iterations = 3});
  iterate(*session, *inline_submitter(step, *session), {.iterations = 3});
  const Timeline timeline = session->timeline();
  EXPECT_TRUE(timeline.has_exact_gaps) << timeline.source;
  ASSERT_EQ(timeline.spans.size(), 12u);
  for (std::size_t i = 0; i < timeline.spans.size(); i += 2) {
    ASSERT_NE(timeline.spans[i].started_ns, kNoTime) << timeline.source;
    EXPECT_LE(timeline.spans[i].ended_ns, timeline.spans[i + 1].started_ns);
  }
  EXPECT_EQ(session->footprint(0)->blocks, 6u);
  EXPECT_EQ(session->footprint(0)->blocks_per_multiprocessor, 16u);
}

TEST_F(GpuActivityTrace, a_product_of_the_library_is_not_counted) {
  const auto device = open();
  const Step step = products();
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {.is_traced = true, .trace_iterations = 1});
  iterate(*session, *inline_submitter(step, *session), {});
  EXPECT_TRUE(has(session->timeline().source, "the library decides")) << session->timeline().source;
  EXPECT_EQ(fake_gpu::activity_starts(), 0);
  EXPECT_FALSE(session->footprint(0));
  EXPECT_GE(session->footprint(1)->blocks, 1u);
}

// Any subset in any order, asked again and again: what was forgotten is not missed.
TEST_F(GpuActivityTrace, a_session_may_be_asked_often) {
  const auto device = open();
  StepBuilder builder(1);
  for (StreamId s = 0; s < 4; ++s)
    for (int i = 0; i < 3; ++i)
      builder.launch("fill", {.stream = s}, {.dims = {4, 0}}, {{builder.output(ElementType::f32, 4)}});
  const Step step = std::move(builder).seal(4);
  const Placement placement = natural(step);
  const auto session = device->prepare(step, placement, {.is_traced = true, .trace_iterations = 2});
  Dice dice(7);
  for (std::uint32_t iteration = 0; iteration < 50; ++iteration) {
    session->begin_iteration();
    std::vector<CommandId> commands;
    for (int i = 0; i < 6; ++i)
      if (const CommandId id = dice.below(12); std::find(commands.begin(), commands.end(), id) == commands.end())
        commands.push_back(id);
    session->submit(commands);
    session->finish();
    const Timeline timeline = session->timeline();
    EXPECT_EQ(timeline.source, "activity records of fake profiler 1");
    std::size_t latest = 0;
    for (const Span& span : timeline.spans) {
      ASSERT_NE(span.started_ns, kNoTime) << iteration;
      EXPECT_GE(span.started_ns, span.submitted_ns);
      if (span.iteration == iteration) ++latest;
    }
    EXPECT_EQ(latest, commands.size());
    for (std::size_t i = 1; i < commands.size(); ++i) {
      const auto span_of = [&](CommandId id) {
        return *std::find_if(timeline.spans.begin(), timeline.spans.end(),
                             [&](const Span& span) { return span.command == id && span.iteration == iteration; });
      };
      const Span before = span_of(commands[i - 1]), after = span_of(commands[i]);
      if (before.stream == after.stream) {
        EXPECT_LE(before.ended_ns, after.started_ns);
      }
    }
  }
}

TEST_F(GpuActivityTrace, submit_allocates_nothing) {
  open();  // has a profiler from now on
  GpuApi quiet = fake_gpu::api();
  const auto device = open_gpu(quiet, {});
  const Placement placement = natural(step());
  const auto session =
      device->prepare(step(), placement, {.is_pipelined = true, .is_traced = true, .trace_iterations = 2});
  const auto submitter = inline_submitter(step(), *session);
  quiet.launch = [](auto...) { return 0; };
  quiet.launch_host = [](GpuStream, GpuHostCall*) { return 0; };
  quiet.event_record = [](auto...) { return 0; };
  quiet.stream_wait = [](auto...) { return 0; };
  quiet.copy_on_device = quiet.copy_any = [](auto...) { return 0; };
  quiet.copy_to_device = [](auto...) { return 0; };
  quiet.copy_to_host = [](auto...) { return 0; };
  const std::uint64_t before = allocation_count();
  for (int i = 0; i < 300; ++i) {
    session->begin_iteration();
    submitter->submit_step();
  }
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(fake_gpu::activity_starts(), 1);
}

TEST_F(GpuActivityTrace, a_footprint_is_of_kernels_only) {
  const auto device = open();
  const Placement placement = natural(step());
  const auto session = device->prepare(step(), placement, {});
  for (CommandId id = 0; id < step().commands().size(); ++id)
    EXPECT_EQ(session->footprint(id).has_value(), step().commands()[id].kind == CommandKind::kernel) << id;
}

}  // namespace
}  // namespace weir
