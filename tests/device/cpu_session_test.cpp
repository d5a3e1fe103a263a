// Sessions of the cpu device: timelines, iterations in flight, allocations, failures, lifetimes.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/cpu_testing.h"

namespace weir {
namespace {

TEST(CpuSession, keeps_a_timeline) {
  for (const SubmitMode mode : {SubmitMode::eager, SubmitMode::graph}) {
    ActionStep step;
    const BufferId data = step.data();
    for (int i = 0; i < 6; ++i)
      step.add_on(
          {.stream = static_cast<StreamId>(i % 3), .role = static_cast<std::uint8_t>(i)}, data, [](std::uint32_t) {},
          2);
    const auto device = action_device(2, 2);
    Prepared run(*device, step.seal(), {.mode = mode, .is_traced = true, .trace_iterations = 2});
    for (int i = 0; i < 3; ++i) {  // one more than is traced
      run.iterate();
      run.session->finish();
    }
    const Timeline timeline = run.session->timeline();
    EXPECT_TRUE(timeline.has_exact_gaps);
    EXPECT_FALSE(timeline.source.empty());
    ASSERT_EQ(timeline.spans.size(), 12u);
    for (const Span& span : timeline.spans) {
      EXPECT_EQ(span.enqueued_ns, kNoTime);
      EXPECT_NE(span.submitted_ns, kNoTime);
      EXPECT_GE(span.accepted_ns, span.submitted_ns);
      EXPECT_LE(span.submitted_ns, span.started_ns);
      EXPECT_LE(span.started_ns, span.ended_ns);
      EXPECT_EQ(span.stream, span.command % 3);
      EXPECT_EQ(span.role, span.command);
      EXPECT_EQ(span.queue, mode == SubmitMode::graph ? kNoQueue : span.stream % 2);
      if (span.command > 0) {
        EXPECT_GE(span.started_ns, run.span(span.command - 1, span.iteration).ended_ns);
      }
    }
    EXPECT_EQ(run.session->take_spans().size(), 3u);
  }
}

TEST(CpuSession, pipelines_more_iterations_than_its_window) {
  for (const SubmitMode mode : {SubmitMode::eager, SubmitMode::graph}) {
    constexpr int kIterations = 1500;
    std::atomic<int> sum{0};
    ActionStep step;
    const BufferId data = step.data();
    for (int i = 0; i < 4; ++i) step.add_on({.stream = static_cast<StreamId>(i)}, data, [&](std::uint32_t) { ++sum; });
    const auto device = action_device(2, 2);
    Prepared run(*device, step.seal(), {.mode = mode, .is_pipelined = true});
    for (int i = 0; i < kIterations; ++i) run.iterate();
    run.session->finish();
    EXPECT_EQ(sum, 4 * kIterations);
    const auto spans = run.session->take_spans();
    ASSERT_EQ(spans.size(), static_cast<std::size_t>(kIterations));
    for (std::size_t i = 0; i < spans.size(); ++i) {
      EXPECT_NE(spans[i].started_ns, kNoTime);
      EXPECT_LE(spans[i].started_ns, spans[i].ended_ns);
      if (i > 0) {
        EXPECT_LE(spans[i - 1].ended_ns, spans[i].started_ns);  // each reads what the last one wrote
      }
    }
    EXPECT_TRUE(run.session->take_spans().empty());
  }
}

TEST(CpuSession, an_unfinished_iteration_holds_up_nothing) {
  std::atomic<int> count{0};
  ActionStep step;
  for (int i = 0; i < 2; ++i) step.add({.stream = static_cast<StreamId>(i)}, [&](std::uint32_t) { ++count; });
  const auto device = action_device(2, 2);
  Prepared run(*device, step.seal());
  for (int i = 0; i < 600; ++i) {
    run.session->begin_iteration();
    run.session->submit(std::span(run.ids).first(i % 3 == 0 ? 0 : 1));
  }
  run.session->finish();
  EXPECT_EQ(count, 400);
  const auto spans = run.session->take_spans();
  ASSERT_EQ(spans.size(), 600u);
  EXPECT_EQ(spans[0].started_ns, kNoTime);
  EXPECT_NE(spans[1].started_ns, kNoTime);
  EXPECT_EQ(spans[1].ended_ns, kNoTime);
}

TEST(CpuSession, allocates_nothing_between_start_and_end) {
  for (const bool is_traced : {false, true}) {
    for (const SubmitMode mode : {SubmitMode::eager, SubmitMode::graph}) {
      ActionStep step;
      const BufferId shared = step.data();
      for (int i = 0; i < 40; ++i) {
        step.add({.stream = static_cast<StreamId>(i % 8)}, [](std::uint32_t) {}, 3);
        step.add_on({.stream = static_cast<StreamId>(i % 8)}, shared, [](std::uint32_t) {});
      }
      const BufferId from = step.builder().uniform(ElementType::f32, 100),
                     to = step.builder().output(ElementType::f32, 100);
      step.builder().copy({.stream = 1}, {from}, {to});
      const auto device = action_device(3, 2);
      Prepared run(*device, step.seal(),
                   {.mode = mode, .is_pipelined = true, .is_traced = is_traced, .trace_iterations = 400});
      run.iterate();
      run.session->finish();
      const std::uint64_t before = allocation_count();
      for (int i = 0; i < 399; ++i) run.iterate();
      run.session->finish();
      EXPECT_EQ(allocation_count() - before, 0u);
    }
  }
}

TEST(CpuSession, what_a_body_throws_is_thrown_by_finish) {
  std::atomic<bool> is_broken{true};
  std::atomic<int> count{0};
  ActionStep step;
  step.add(
      {},
      [&](std::uint32_t block) {
        ++count;
        if (is_broken && block == 1) throw std::runtime_error("no such table");
      },
      4);
  const auto device = action_device(2, 2);
  Prepared run(*device, step.seal());
  run.iterate();
  try {
    run.session->finish();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::run);
    EXPECT_NE(std::string(error.what()).find("no such table"), std::string::npos) << error.what();
  }
  is_broken = false;
  run.iterate();
  EXPECT_NO_THROW(run.session->finish());
  EXPECT_EQ(count, 8);
}

TEST(CpuSession, submit_needs_an_iteration) {
  ActionStep step;
  step.add({}, [](std::uint32_t) {});
  const auto device = action_device(1, 1);
  Prepared run(*device, step.seal());
  run.session->submit(run.ids);
  EXPECT_THROW(run.session->finish(), Error);
}

TEST(CpuSession, its_end_waits_for_work_in_flight) {
  std::atomic<int> count{0};
  {
    const auto device = action_device(2, 2);
    for (int round = 0; round < 20; ++round) {
      ActionStep step;
      const BufferId data = step.data();
      for (int i = 0; i < 50; ++i)
        step.add_on({.stream = static_cast<StreamId>(i % 5)}, data, [&](std::uint32_t) { ++count; });
      Prepared run(*device, step.seal(), {.mode = round % 2 == 0 ? SubmitMode::eager : SubmitMode::graph});
      run.iterate();
    }
  }
  EXPECT_EQ(count, 1000);
}

TEST(CpuSession, may_outlive_its_device) {
  std::atomic<int> count{0};
  ActionStep step;
  step.add({}, [&](std::uint32_t) { ++count; });
  auto device = action_device(1, 2);
  Prepared run(*device, step.seal());
  device.reset();
  run.iterate();
  run.session->finish();
  EXPECT_EQ(count, 1);
}

TEST(CpuSession, several_at_once) {
  constexpr int kSessions = 3, kIterations = 200;
  std::vector<std::vector<int>> orders(kSessions);
  const auto device = action_device(2, 2);
  std::vector<std::unique_ptr<Prepared>> runs;
  for (int s = 0; s < kSessions; ++s) {
    ActionStep step;
    const BufferId data = step.data();
    for (int i = 0; i < 6; ++i)
      step.add_on({.stream = static_cast<StreamId>(i % 3)}, data,
                  [&order = orders[static_cast<std::size_t>(s)], i](std::uint32_t) { order.push_back(i); });
    runs.push_back(std::make_unique<Prepared>(
        *device, step.seal(),
        SessionOptions{.mode = s == 0 ? SubmitMode::eager : SubmitMode::graph, .is_pipelined = true}));
  }
  std::vector<std::jthread> threads;
  for (auto& run : runs) {
    threads.emplace_back([&run] {
      for (int i = 0; i < kIterations; ++i) run->iterate();
      run->session->finish();
    });
  }
  threads.clear();
  for (const auto& order : orders) {
    ASSERT_EQ(order.size(), 6u * kIterations);
    for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<int>(i % 6));
  }
}

TEST(CpuSession, reports_stream_progress) {
  for (const SubmitMode mode : {SubmitMode::eager, SubmitMode::graph}) {
    Gate gates[3];
    ActionStep step;
    const BufferId shared = step.data();
    step.add({.stream = 0}, [](std::uint32_t) {}, 3);
    step.add_on({.stream = 0}, shared, [&](std::uint32_t) { gates[0].wait(); });
    step.add({.stream = 1}, [](std::uint32_t) {});
    step.add_on({.stream = 1}, shared, [&](std::uint32_t) { gates[1].wait(); });
    step.add({.stream = 0}, [&](std::uint32_t) { gates[2].wait(); });
    const auto device = action_device(4, 3);
    Prepared run(*device, step.seal(), {.mode = mode, .is_pipelined = true});
    const auto await = [&](std::uint64_t first, std::uint64_t second) {
      for (;;) {
        const auto progress = run.session->progress();
        ASSERT_EQ(progress.size(), 2u);
        EXPECT_TRUE(progress[0].is_exact && progress[1].is_exact);
        ASSERT_LE(progress[0].ended, first);
        ASSERT_LE(progress[1].ended, second);
        if (progress[0].ended == first && progress[1].ended == second) return;
        std::this_thread::yield();
      }
    };
    await(0, 0);
    run.iterate();
    EXPECT_EQ(run.session->progress()[0].submitted, 3u);
    EXPECT_EQ(run.session->progress()[1].submitted, 2u);
    await(1, 1);
    gates[0].open();
    await(2, 1);
    gates[1].open();
    await(2, 2);
    gates[2].open();
    await(3, 2);
    for (int i = 0; i < 99; ++i) run.iterate();
    run.session->finish();
    await(300, 200);
    EXPECT_EQ(run.session->progress()[0].submitted, 300u);
    EXPECT_EQ(run.session->progress()[1].submitted, 200u);
  }
}

TEST(CpuSession, reset_brings_back_the_initial_contents) {
  StepBuilder builder(7);
  const BufferId in = builder.uniform(ElementType::f32, 3 << 20, 2, 1);  // large enough for reset() to use threads
  const BufferId out = builder.output(ElementType::f32, 100);
  builder.launch("fill", {}, {.dims = {50}, .scalars = {3}}, {{in, 0, 50}});
  builder.launch("fill", {}, {.dims = {100}, .scalars = {4}}, {{out}});
  const auto device = cpu::open_cpu({.hardware_queues = 0, .workers = 2});
  Prepared run(*device, std::move(builder).seal(1));
  std::vector<std::byte> initial(run.step.buffers()[in].size_bytes()), now(initial.size());
  initialise(run.step.buffers()[in], initial);
  run.iterate();
  run.session->finish();
  run.session->read(in, now);
  EXPECT_NE(std::memcmp(initial.data(), now.data(), now.size()), 0);
  run.session->reset();
  run.session->read(in, now);
  EXPECT_EQ(std::memcmp(initial.data(), now.data(), now.size()), 0);
  EXPECT_THROW(run.session->read(in, std::span(now).first(8)), Error);
  const MemoryUse memory = run.session->memory();
  EXPECT_EQ(memory.allocated_bytes, (3u << 20) * 4 + 400);
  EXPECT_GE(*memory.reserved_bytes, *memory.allocated_bytes);
}

}  // namespace
}  // namespace weir
