// The cpu device's hardware, rule by rule: what blocks a queue, whose blocks go first, who runs copies, who sleeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

#include "device/cpu_testing.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr SessionOptions kTraced{.is_traced = true, .trace_iterations = 4};

TEST(CpuQueue, head_blocks_the_streams_behind_it) {
  Gate gate;
  std::atomic<bool> has_run{false};
  ActionStep step;
  const CommandId first = step.add({.stream = 0}, [&](std::uint32_t) { gate.wait(); });
  step.add({.stream = 0}, [](std::uint32_t) {});
  const CommandId behind = step.add({.stream = 1}, [&](std::uint32_t) { has_run = true; });
  const auto device = action_device(1, 2);
  Prepared run(*device, step.seal(), kTraced);
  run.iterate();
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(has_run);
  gate.open();
  run.session->finish();
  EXPECT_TRUE(has_run);
  EXPECT_GE(run.span(behind).started_ns, run.span(first).ended_ns);
}

TEST(CpuQueue, streams_on_other_queues_are_not_blocked) {
  Gate gate;
  ActionStep step;
  step.add({.stream = 0}, [&](std::uint32_t) { gate.wait(); });
  step.add({.stream = 0}, [](std::uint32_t) {});
  step.add({.stream = 1}, [&](std::uint32_t) { gate.open(); });  // hangs the test if it has to wait for the first
  const auto device = action_device(2, 2);
  Prepared run(*device, step.seal());
  run.iterate();
  run.session->finish();
}

TEST(CpuQueue, a_launched_kernel_leaves_its_queue) {
  Gate gate;
  ActionStep step;
  step.add({.stream = 0}, [&](std::uint32_t) { gate.wait(); });
  step.add({.stream = 1}, [&](std::uint32_t) { gate.open(); });
  const auto device = action_device(1, 2);
  Prepared run(*device, step.seal());
  run.iterate();
  run.session->finish();
}

// Stream 1 waits for an event of stream 0; stream 2 has nothing to do with either.
struct WaitCase {
  Gate gate;
  CommandId recorder, waiter, bystander;
  ActionStep step;
  explicit WaitCase(bool bystander_opens) {
    const BufferId data = step.data();
    recorder = step.add_on({.stream = 0}, data, [this](std::uint32_t) { gate.wait(); });
    waiter = step.add_on({.stream = 1}, data, [](std::uint32_t) {});
    bystander = step.add({.stream = 2}, [this, bystander_opens](std::uint32_t) {
      if (bystander_opens) gate.open();
    });
  }
};

TEST(CpuQueue, a_wait_blocks_the_streams_behind_it) {
  WaitCase waits(false);
  const auto device = action_device(1, 2);
  Prepared run(*device, waits.step.seal(), kTraced);
  run.iterate();
  std::this_thread::sleep_for(5ms);
  waits.gate.open();
  run.session->finish();
  EXPECT_GE(run.span(waits.waiter).started_ns, run.span(waits.recorder).ended_ns);
  EXPECT_GE(run.span(waits.bystander).started_ns, run.span(waits.recorder).ended_ns);
}

TEST(CpuQueue, a_wait_on_another_queue_blocks_nobody_else) {
  WaitCase waits(true);
  const auto device = action_device(3, 2);
  Prepared run(*device, waits.step.seal(), kTraced);
  run.iterate();
  run.session->finish();
  EXPECT_GE(run.span(waits.waiter).started_ns, run.span(waits.recorder).ended_ns);
}

TEST(CpuQueue, a_full_queue_holds_the_submitter) {
  Gate gate;
  ActionStep step;
  step.add({.stream = 0}, [&](std::uint32_t) { gate.wait(); });
  std::vector<int> order;
  for (int i = 0; i < 3000; ++i) step.add({.stream = 0}, [&, i](std::uint32_t) { order.push_back(i); });
  const auto device = action_device(1, 2);
  Prepared run(*device, step.seal());
  std::atomic<bool> is_submitted{false};
  std::thread submitter([&] {
    run.iterate();
    is_submitted = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(is_submitted);
  gate.open();
  submitter.join();
  run.session->finish();
  ASSERT_EQ(order.size(), 3000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// Submitted commands are launched by whichever thread of the device comes to it first. On a busy machine that one may
// be stopped in the middle while the worker goes on without the rest, which is no fault: so `order` is given time, and
// more of it every time. An order that is wrong by design is wrong every time.
void expect_order(std::vector<int> (*order)(std::chrono::milliseconds patience), const std::vector<int>& expected) {
  std::vector<int> found;
  for (int attempt = 0; attempt < 8 && found != expected; ++attempt)
    found = order(std::chrono::milliseconds((1 << attempt) - 1));
  EXPECT_EQ(found, expected);
}

std::vector<int> order_of_priorities(std::chrono::milliseconds patience) {
  Gate gate;
  Log log;
  ActionStep step;
  step.add({.stream = 0}, [&](std::uint32_t) { gate.wait(); });
  const auto logs = [&](int name) {
    return [&log, name](std::uint32_t block) { log.add(name * 10 + static_cast<int>(block)); };
  };
  step.add({.stream = 1, .priority = -1}, logs(1), 2);
  step.add({.stream = 2, .priority = 0}, logs(2), 2);
  step.add({.stream = 3, .priority = 2}, logs(3), 2);
  step.add({.stream = 4, .priority = 0}, logs(4), 2);
  step.add({.stream = 5, .priority = 100}, logs(5), 1);  // more than there is: the most urgent level
  const auto device = action_device(8, 1);
  Prepared run(*device, step.seal());
  run.iterate();
  std::this_thread::sleep_for(patience);
  gate.open();
  run.session->finish();
  return log.entries();
}

TEST(CpuBlocks, go_by_priority_then_by_age) { expect_order(order_of_priorities, {30, 31, 50, 20, 21, 40, 41, 10, 11}); }

std::vector<int> order_of_one_that_passes(std::chrono::milliseconds patience) {
  Gate has_started, gate;
  Log log;
  ActionStep low_step, high_step;
  low_step.add(
      {.stream = 0},
      [&](std::uint32_t block) {
        has_started.open();
        if (block == 0) gate.wait();
        log.add(static_cast<int>(block));
      },
      3);
  high_step.add({.stream = 0, .priority = 1}, [&](std::uint32_t) { log.add(100); });
  const auto device = action_device(8, 1);
  Prepared low(*device, low_step.seal());
  Prepared high(*device, high_step.seal());
  low.iterate();
  has_started.wait();
  high.iterate();
  std::this_thread::sleep_for(patience);
  gate.open();
  high.session->finish();
  low.session->finish();
  EXPECT_EQ(log.entries().at(0), 0) << "nothing passes within a block";
  return log.entries();
}

TEST(CpuBlocks, urgent_kernels_pass_between_blocks_and_never_within) {
  expect_order(order_of_one_that_passes, {0, 100, 1, 2});
}

TEST(CpuBlocks, all_workers_share_a_kernel) {
  constexpr int kWorkers = 3;
  std::atomic<int> inside{0};
  ActionStep step;
  // Each block waits until as many as there are workers run at once.
  step.add(
      {},
      [&](std::uint32_t) {
        ++inside;
        while (inside < kWorkers) std::this_thread::yield();
      },
      kWorkers);
  const auto device = action_device(1, kWorkers);
  Prepared run(*device, step.seal());
  run.iterate();
  run.session->finish();
  EXPECT_EQ(inside, kWorkers);
}

TEST(CpuBlocks, more_kernels_than_slots) {
  for (const SubmitMode mode : {SubmitMode::eager, SubmitMode::graph}) {
    Gate gate;
    std::atomic<int> count{0};
    ActionStep step;
    step.add({.stream = 0}, [&](std::uint32_t) { gate.wait(); });
    for (int i = 1; i < 300; ++i) step.add({.stream = static_cast<StreamId>(i)}, [&](std::uint32_t) { ++count; });
    const auto device = action_device(8, 2);
    Prepared run(*device, step.seal(), {.mode = mode});
    run.iterate();
    gate.open();
    run.session->finish();
    EXPECT_EQ(count, 299);
  }
}

TEST(CpuCopies, run_beside_busy_workers) {
  Gate has_started, gate;
  ActionStep holder, copier;
  holder.add({}, [&](std::uint32_t) {
    has_started.open();
    gate.wait();
  });
  const std::uint64_t count = (3 << 20) / 4 + 5;  // several chunks, the last one short
  const BufferId from = copier.builder().uniform(ElementType::f32, count);
  const BufferId to = copier.builder().output(ElementType::f32, count);
  copier.builder().copy({}, {from}, {to});
  const auto device = action_device(1, 1);
  Prepared held(*device, holder.seal());
  Prepared copied(*device, copier.seal());
  held.iterate();
  has_started.wait();
  copied.iterate();
  copied.session->finish();  // the only worker is still busy
  EXPECT_FALSE(gate.is_open());
  gate.open();
  held.session->finish();
  std::vector<std::byte> expected(count * 4), found(count * 4);
  copied.session->read(from, expected);
  copied.session->read(to, found);
  EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size()), 0);
}

TEST(CpuCopies, overlapping_ranges) {
  ActionStep step;
  const std::uint64_t count = (5 << 20) / 4;
  const BufferId data = step.builder().uniform(ElementType::f32, count);
  step.builder().copy({}, {data, 0, count - 7}, {data, 7, count - 7});
  const auto device = action_device(1, 1);
  Prepared run(*device, step.seal());
  std::vector<std::byte> before(count * 4), after(count * 4);
  run.session->read(data, before);
  run.iterate();
  run.session->finish();
  run.session->read(data, after);
  EXPECT_EQ(std::memcmp(before.data(), after.data() + 28, before.size() - 28), 0);
}

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

TEST(CpuWorkers, sleep_when_idle_and_wake_for_work) {
  std::atomic<int> count{0};
  ActionStep step;
  for (int i = 0; i < 4; ++i) step.add({.stream = static_cast<StreamId>(i)}, [&](std::uint32_t) { ++count; }, 4);
  const auto device = action_device(4, 4);
  Prepared run(*device, step.seal());
  for (int round = 0; round < 50; ++round) {
    std::this_thread::sleep_for(2ms);  // all parked
    run.iterate();
    run.session->finish();
  }
  EXPECT_EQ(count, 50 * 16);
  std::this_thread::sleep_for(50ms);
  const double before = process_cpu_seconds();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(process_cpu_seconds() - before, 0.03);  // four spinning workers would burn 0.6 s on two cores
}

}  // namespace
}  // namespace weir
