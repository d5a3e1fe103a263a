// Host functions: the threads that share their blocks, and the cpu device's engine for them.
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "base/error.h"
#include "device/allocation_count.h"
#include "device/cpu_testing.h"
#include "device/host_threads.h"

namespace weir {
namespace {

// The body finds its counters in its first operand.
KernelCall call_on(std::vector<std::atomic<int>>& counts) {
  KernelCall call{};
  call.operands[0] = counts.data();
  return call;
}
void count_block(const KernelCall& call, std::uint32_t block) {
  static_cast<std::atomic<int>*>(call.operands[0])[block].fetch_add(1);
}

TEST(HostThreads, run_each_block_once) {
  for (const int count : {1, 2, 4}) {
    HostThreads threads(count);
    for (std::uint32_t blocks = 1; blocks < 60; ++blocks) {
      std::vector<std::atomic<int>> counts(blocks);
      const KernelCall call = call_on(counts);
      for (int i = 0; i < 20; ++i) threads.run(count_block, call, blocks);
      for (const auto& found : counts) ASSERT_EQ(found, 20);
    }
  }
}

TEST(HostThreads, serve_several_callers) {
  HostThreads threads(3);
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&threads] {
      std::vector<std::atomic<int>> counts(17);
      const KernelCall call = call_on(counts);
      for (int i = 0; i < 300; ++i) threads.run(count_block, call, 17);
      for (const auto& found : counts) EXPECT_EQ(found, 300);
    });
  }
}

TEST(HostThreads, allocate_nothing_per_call) {
  HostThreads threads(3);
  std::vector<std::atomic<int>> counts(9);
  const KernelCall call = call_on(counts);
  threads.run(count_block, call, 9);
  const std::uint64_t before = allocation_count();
  for (int i = 0; i < 200; ++i) threads.run(count_block, call, 9);
  EXPECT_EQ(allocation_count(), before);
}

TEST(HostThreads, keep_what_a_body_throws) {
  HostThreads threads(2);
  const KernelCall call{};
  EXPECT_EQ(threads.take_failure(), nullptr);
  threads.run([](const KernelCall&, std::uint32_t) { throw std::runtime_error("no"); }, call, 5);
  EXPECT_THROW(std::rethrow_exception(threads.take_failure()), std::runtime_error);
  threads.run([](const KernelCall&, std::uint32_t) {}, call, 5);
  EXPECT_EQ(threads.take_failure(), nullptr);
}

TEST(CpuHost, runs_apart_from_workers_and_copies) {
  // The only worker and the copy engine are busy until the host function has run; hangs if it needs one of them.
  Gate gate;
  ActionStep step;
  step.add({.stream = 0}, [&](std::uint32_t) { gate.wait(); });
  step.add_on_host({.stream = 1}, step.host_data(), [&](std::uint32_t) { gate.open(); });
  const auto device = action_device(2, 1);
  Prepared run(*device, step.seal());
  run.iterate();
  run.session->finish();
}

TEST(CpuHost, a_busy_one_holds_up_no_kernel) {
  Gate gate;
  ActionStep step;
  step.add_on_host({.stream = 0}, step.host_data(), [&](std::uint32_t) { gate.wait(); });
  step.add({.stream = 1}, [&](std::uint32_t) { gate.open(); });
  const auto device = action_device(2, 1);
  Prepared run(*device, step.seal());
  run.iterate();
  run.session->finish();
}

TEST(CpuHost, does_not_run_in_the_submitting_thread) {
  std::atomic<std::thread::id> ran{};
  Gate gate;
  ActionStep step;
  step.add_on_host({}, step.host_data(), [&](std::uint32_t) {
    gate.wait();
    ran = std::this_thread::get_id();
  });
  const auto device = action_device(1, 1);
  Prepared run(*device, step.seal());
  run.iterate();
  gate.open();  // after submit() has returned: it would hang if the body ran in it
  run.session->finish();
  EXPECT_NE(ran.load(), std::this_thread::get_id());
}

TEST(CpuHost, keeps_the_order_of_its_stream_and_a_timeline) {
  for (const SubmitMode mode : {SubmitMode::eager, SubmitMode::graph}) {
    Log log;
    ActionStep step;
    const BufferId host = step.host_data();
    for (int i = 0; i < 12; ++i) {
      const StreamId stream = static_cast<StreamId>(mode == SubmitMode::graph ? i % 2 : 0);
      if (i % 3 == 0) {
        step.add_on_host({.stream = stream}, host, [&log, i](std::uint32_t) { log.add(i); });
      } else if (stream == 0 && mode == SubmitMode::eager) {
        step.add({.stream = stream}, [&log, i](std::uint32_t) { log.add(i); });
      } else {
        step.add_on_host({.stream = stream}, host, [&log, i](std::uint32_t) { log.add(i); });
      }
    }
    const auto device = action_device(2, 2);
    Prepared run(*device, step.seal(), {.mode = mode, .is_traced = true, .trace_iterations = 1});
    run.iterate();
    run.session->finish();
    std::vector<int> expected(12);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(log.entries(), expected);
    for (CommandId id = 1; id < 12; ++id) EXPECT_GE(run.span(id).started_ns, run.span(id - 1).ended_ns);
  }
}

TEST(CpuGraph, segments_follow_each_other) {
  // Nothing but the cuts orders these.
  Log log;
  ActionStep step;
  for (int i = 0; i < 9; ++i) {
    if (i % 3 == 0) step.builder().cut();
    step.add({.stream = static_cast<StreamId>(i % 3)}, [&log, i](std::uint32_t) { log.add(i / 3); });
  }
  step.builder().cut();
  step.add_on_host({.stream = 1}, step.host_data(), [&log](std::uint32_t) { log.add(3); });
  step.builder().cut();
  step.add({.stream = 2}, [&log](std::uint32_t) { log.add(4); });
  const auto device = action_device(2, 3);
  Prepared run(*device, step.seal(),
               {.mode = SubmitMode::graph, .is_pipelined = true, .is_traced = true, .trace_iterations = 2});
  for (int i = 0; i < 20; ++i) run.iterate();
  run.session->finish();
  std::vector<int> expected;
  for (int i = 0; i < 20; ++i) expected.insert(expected.end(), {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4});
  EXPECT_EQ(log.entries(), expected);
  const Timeline timeline = run.session->timeline();
  ASSERT_EQ(timeline.spans.size(), 22u);
  for (const Span& span : timeline.spans) {
    EXPECT_LE(span.submitted_ns, span.started_ns);
    if (span.command % 3 != 0) continue;
    if (span.command > 0) {
      EXPECT_GE(span.submitted_ns, run.span(span.command - 1, span.iteration).submitted_ns);
    }
  }
}

TEST(CpuHost, what_a_body_throws_is_thrown_by_finish) {
  ActionStep step;
  step.add_on_host({}, step.host_data(), [](std::uint32_t) { throw std::runtime_error("no such file"); });
  const auto device = action_device(1, 1);
  Prepared run(*device, step.seal());
  run.iterate();
  EXPECT_THROW(run.session->finish(), Error);
}

}  // namespace
}  // namespace weir
