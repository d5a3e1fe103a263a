// Suspending clients that have to wait, against the model of the driver: who is suspended and when, what the driver
// refuses, and that nothing stays suspended whatever fails.
#include "submit/sched/mechanism/queue_suspender.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "submit/sched/daemon.h"
#include "submit/sched/mechanism/list.h"
#include "submit/sched/mechanism/suspend_pace.h"
#include "support/fake_kfd.h"
#include "support/text.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

constexpr int kVictim = 200, kUrgent1 = 300;
constexpr std::uint64_t kVictimBit = 1, kUrgentBit = 2;  // their seats are 0 and 1

// The model, for the suspender's thread and the test's.
struct Model {
  std::mutex mutex;
  FakeKfd kfd;
  std::atomic<int> stays{0};         // how often detaching finds that the process has not stopped
  std::atomic<bool> refuses{false};  // to resume, and to disable the interface
  template <class Look>
  auto look(Look&& look) {
    const std::lock_guard lock(mutex);
    return look(kfd);
  }
  std::size_t suspended() {
    return look([](const FakeKfd& kfd) { return kfd.suspended(); });
  }
  // How many calls of that kind there were.
  std::ptrdiff_t calls(const std::string& name) {
    return look([&](const FakeKfd& kfd) {
      return std::count_if(kfd.log.begin(), kfd.log.end(), [&](const auto& line) { return line.starts_with(name); });
    });
  }
};

class LockedKfd final : public kfd::DebugTrap {
 public:
  explicit LockedKfd(Model& model) : model_(model) {}
  int version(kfd::InterfaceVersion* version) noexcept override { return with()->version(version); }
  int own_pid() const noexcept override { return model_.kfd.self; }
  int attach(int pid) noexcept override { return with()->attach(pid); }
  int detach(int pid) noexcept override { return model_.stays.fetch_sub(1) > 0 ? -EAGAIN : with()->detach(pid); }
  bool attend(int pid) noexcept override { return with()->attend(pid); }
  int runtime_enable() noexcept override { return with()->runtime_enable(); }
  int runtime_disable() noexcept override { return with()->runtime_disable(); }
  int enable(int pid, std::uint64_t mask, kfd::RuntimeState* state) noexcept override {
    return with()->enable(pid, mask, state);
  }
  int disable(int pid) noexcept override { return model_.refuses ? -EIO : with()->disable(pid); }
  int suspend_queues(int pid, std::span<std::uint32_t> ids, std::uint64_t mask, std::uint32_t grace) noexcept override {
    return with()->suspend_queues(pid, ids, mask, grace);
  }
  int resume_queues(int pid, std::span<std::uint32_t> ids) noexcept override {
    return model_.refuses ? -EIO : with()->resume_queues(pid, ids);
  }
  int queue_snapshot(int pid, std::uint64_t mask, std::span<kfd::QueueSnapshot> queues) noexcept override {
    return with()->queue_snapshot(pid, mask, queues);
  }
  std::int64_t now_ns() noexcept override { return with()->now_ns(); }

 private:
  // The model, locked for as long as this lives: for one call.
  class Locked {
   public:
    explicit Locked(Model& model) : lock_(model.mutex), kfd_(model.kfd) {}
    FakeKfd* operator->() { return &kfd_; }

   private:
    std::lock_guard<std::mutex> lock_;
    FakeKfd& kfd_;
  };
  Locked with() { return Locked(model_); }
  Model& model_;
};

class Suspender : public ::testing::Test {
 protected:
  Suspender() {
    limits.silent_ns = kNever / 4;  // a busy machine may keep the test from its core
    settings.slice_ns = 1;
    model.kfd.processes[kVictim].queues = {{1, {.type = 2}}, {2, {.type = 1}}, {3, {.type = 0}}};
    model.kfd.processes[kUrgent1].queues = {{1, {.type = 2}}};
  }
  void start() {
    suspender = std::make_unique<QueueSuspender>(std::make_unique<LockedKfd>(model), settings, limits);
    suspender->join(0, kVictim);
    suspender->join(1, kUrgent1);
  }
  void hold(std::uint64_t waiting) { suspender->hold(waiting, now_ns()); }
  MechanismUse use() const { return suspender->use(0); }
  // Waits until the victim is off the device, or it is known why it is not.
  void hold_and_await() {
    const std::string before = use().reason;
    hold(kVictimBit);
    until([&] { return use().is_off || use().reason != before; });
  }
  Model model;
  Settings settings;
  QueueSuspender::Limits limits;
  std::unique_ptr<QueueSuspender> suspender;
};

TEST_F(Suspender, takes_a_waiting_client_off_the_device_and_puts_it_back) {
  start();
  EXPECT_FALSE(use().is_in_use);
  EXPECT_TRUE(has(use().reason, "not had to wait"));
  hold(kVictimBit);
  until([&] { return use().is_off; });
  EXPECT_EQ(model.suspended(), 2U) << "its queues that run kernels, and not the one that copies";
  EXPECT_TRUE(use().is_in_use && use().reason.empty());
  hold(0);
  until([&] { return !use().is_off; });
  EXPECT_EQ(model.suspended(), 0U);
  EXPECT_EQ(use().times_off, 1U);
  EXPECT_EQ(use().cost_ns, model.kfd.suspend_ns + model.kfd.resume_ns);
  hold(kVictimBit);
  until([&] { return use().times_off == 2; });
  suspender.reset();
  EXPECT_EQ(model.suspended(), 0U);
  EXPECT_EQ(model.calls("attach 200"), 1) << "once, not for each suspension";
  EXPECT_EQ(model.calls("attach 300"), 0) << "it never had to wait";
  EXPECT_EQ(model.look([](FakeKfd& kfd) { return kfd.processes[kVictim].is_traced; }), false);
}

TEST_F(Suspender, touches_nobody_while_nobody_waits) {
  start();
  for (int i = 0; i < 100; ++i) hold(0);
  suspender.reset();
  EXPECT_TRUE(model.kfd.log.empty()) << model.kfd.log[0];
}

TEST_F(Suspender, lets_a_client_run_for_a_slice_before_the_next_time) {
  settings.slice_ns = 3'600'000'000'000;
  start();
  hold(kVictimBit);
  until([&] { return use().is_off; });
  hold(0);
  until([&] { return !use().is_off; });
  hold(kVictimBit);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(use().is_off);
  suspender.reset();
  EXPECT_EQ(model.calls("suspend 200"), 1);
}

TEST(SuspendPace, spends_at_most_a_tenth_of_the_time_on_suspending) {
  SuspendPace pace(2'000'000);
  EXPECT_TRUE(pace.may_suspend(0)) << "an urgent request does not wait for the first time";
  pace.resumed(1'000'000, 100'000);
  EXPECT_FALSE(pace.may_suspend(2'999'999));
  EXPECT_TRUE(pace.may_suspend(3'000'000)) << "a slice";
  pace.resumed(10'000'000, 5'000'000);
  EXPECT_FALSE(pace.may_suspend(54'999'999));
  EXPECT_TRUE(pace.may_suspend(55'000'000)) << "nine times what the driver took";
  pace.resumed(0, kNever);
  EXPECT_TRUE(pace.may_suspend(9'000'000'000)) << "a clock that jumps keeps nobody on the device for ever";
  // A driver that takes 1 ms, and requests that never cease: whatever the order, nine tenths of the time are the
  // client's.
  SuspendPace busy(1);
  std::int64_t now = 0, running = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t from = now;
    now = std::max(now, busy.runs_until_ns());
    running += now - from;
    now += 1'000'000;
    busy.resumed(now, 1'000'000);
  }
  EXPECT_GT(static_cast<double>(running), 0.89 * static_cast<double>(now));
}

TEST_F(Suspender, says_what_the_driver_refuses) {
  struct Refused {
    std::function<void(FakeKfd&)> set;
    std::string words;
  };
  const Refused kAll[] = {
      {[](FakeKfd& kfd) { kfd.processes[kVictim].may_be_traced = false; }, "kernel.yama.ptrace_scope"},
      {[](FakeKfd& kfd) { kfd.processes[kVictim].runtime = kfd::RuntimeState::disabled; }, "runtime is not enabled"},
      {[](FakeKfd& kfd) { kfd.processes[kVictim].queues = {{1, {.type = 1}}}; }, "no queue that runs kernels"},
      {[](FakeKfd& kfd) { kfd.processes[kVictim].queues[1].is_stuck = true; }, "queue"},
      {[](FakeKfd& kfd) { kfd.processes.erase(kVictim); }, "no such process"},
      {[](FakeKfd& kfd) { kfd.sched_policy = 2; }, "sched_policy"},
      {[](FakeKfd& kfd) { kfd.processes[kVictim].is_sampled = true; }, "PC sampling"},
      {[](FakeKfd& kfd) { kfd.interface.minor = 12; }, "1.12"},
      {[](FakeKfd& kfd) { kfd.self = kVictim; }, "scheduler's own process"},
  };
  const FakeKfd fresh = model.kfd;
  for (const Refused& refused : kAll) {
    model.kfd = fresh;
    refused.set(model.kfd);
    start();
    hold_and_await();
    EXPECT_TRUE(has(use().reason, refused.words)) << use().reason;
    EXPECT_FALSE(use().is_in_use);
    suspender.reset();
    EXPECT_EQ(model.suspended(), 0U) << refused.words;
  }
}

TEST_F(Suspender, does_not_attach_to_a_process_that_it_cannot_see) {
  start();
  suspender->join(0, 0);
  hold_and_await();
  EXPECT_TRUE(has(use().reason, "pid namespace")) << use().reason;
  suspender.reset();
  EXPECT_TRUE(model.kfd.log.empty());
}

TEST_F(Suspender, tries_again_after_a_refusal) {
  limits.retry_ns = 1'000'000;
  const auto queues = std::exchange(model.kfd.processes[kVictim].queues, {});
  start();
  hold_and_await();
  EXPECT_FALSE(use().is_in_use);
  model.look([&](FakeKfd& kfd) { kfd.processes[kVictim].queues = queues; });
  until([&] { return use().is_off; });
  EXPECT_TRUE(use().reason.empty());
}

TEST_F(Suspender, resumes_when_the_daemon_decides_nothing_any_more) {
  limits.silent_ns = 20'000'000;
  settings.slice_ns = 3'600'000'000'000;
  start();
  hold(kVictimBit);
  until([&] { return model.calls("resume 200") > 0; });
  until([&] { return !use().is_off; });
  EXPECT_EQ(model.suspended(), 0U);
}

TEST_F(Suspender, resumes_and_detaches_who_leaves_and_takes_the_next_on_that_seat) {
  start();
  hold(kVictimBit);
  until([&] { return use().is_off; });
  suspender->leave(0);
  until([&] { return model.calls("detach 200") == 1; });
  EXPECT_EQ(model.suspended(), 0U);
  suspender->join(0, kUrgent1);
  EXPECT_EQ(use().times_off, 0U) << "what its predecessor had";
  hold(kVictimBit);
  until([&] { return use().is_off; });
  EXPECT_EQ(model.calls("suspend 300"), 1);
}

TEST_F(Suspender, lets_go_of_who_need_not_wait_for_long) {
  limits.release_ns = 1'000'000;
  limits.attend_ns = 500'000;
  start();
  hold(kVictimBit);
  until([&] { return use().is_off; });
  hold(0);
  until([&] { return model.calls("detach 200") == 1; });
  EXPECT_TRUE(use().is_in_use) << "it is attached again when it has to wait";
}

TEST_F(Suspender, several_clients_are_held_at_once) {
  start();
  hold(kVictimBit | kUrgentBit);
  until([&] { return use().is_off && suspender->use(1).is_off; });
  EXPECT_EQ(model.suspended(), 3U);
  hold(kUrgentBit);
  until([&] { return !use().is_off; });
  EXPECT_TRUE(suspender->use(1).is_off);
}

TEST_F(Suspender, counts_the_time_off_the_device_while_it_lasts) {
  start();
  hold(kVictimBit);
  until([&] { return use().is_off && use().off_ns > 10'000'000; });
}

TEST_F(Suspender, a_process_that_does_not_stop_keeps_nobody_else_suspended) {
  limits.release_ns = 1'000'000;
  limits.attend_ns = 500'000;
  model.stays = 50;
  start();
  hold(kVictimBit | kUrgentBit);
  until([&] { return use().is_off && suspender->use(1).is_off; });
  suspender->leave(0);
  hold(0);
  until([&] { return !suspender->use(1).is_off; });
  EXPECT_EQ(model.suspended(), 0U);
  until([&] { return model.calls("detach 200") == 1 && model.calls("detach 300") == 1; });
  EXPECT_LT(model.stays, 0);
  hold(kUrgentBit);
  until([&] { return suspender->use(1).is_off; });
}

TEST_F(Suspender, says_that_it_is_suspended_until_the_driver_has_resumed_it) {
  limits.retry_ns = 1'000'000;
  start();
  hold(kVictimBit);
  until([&] { return use().is_off; });
  model.refuses = true;
  hold(0);
  until([&] { return !use().is_in_use; });
  EXPECT_TRUE(use().is_off && has(use().reason, "still suspended")) << use().reason;
  EXPECT_EQ(model.calls("detach 200"), 0) << "the driver resumes for the tracer alone";
  model.refuses = false;
  until([&] { return !use().is_off; });
  EXPECT_EQ(model.suspended(), 0U);
  until([&] { return model.calls("detach 200") == 1; });
}

TEST_F(Suspender, who_takes_a_seat_during_a_slow_call_does_not_wait_for_its_predecessor) {
  start();
  model.look([&](const FakeKfd&) {  // every call of the driver waits until this is done
    hold(kVictimBit | kUrgentBit);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    suspender->leave(1);
    suspender->join(1, kUrgent1);
  });
  until([&] { return use().is_off; });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(model.calls("attach 300"), 0);
}

// Whatever fails, wherever: nothing stays suspended, and nobody stays traced.
TEST_F(Suspender, leaves_nothing_suspended_where_a_call_fails) {
  const FakeKfd fresh = model.kfd;
  limits.retry_ns = kNever / 4;
  bool has_failed = true;
  for (int call = 0; has_failed; ++call) {
    ASSERT_LT(call, 100);
    for (const FakeKfd::Failing failing : {FakeKfd::Failing::before, FakeKfd::Failing::after}) {
      model.kfd = fresh;
      model.kfd.fail_call = call;
      model.kfd.failing = failing;
      start();
      hold_and_await();
      hold(0);
      until([&] { return !use().is_off; });
      suspender.reset();
      has_failed = model.kfd.calls > call;
      // A call that fails once the queues were to be resumed leaves that to the next one.
      EXPECT_EQ(model.suspended(), 0U) << "call " << call << ": " << model.kfd.log[static_cast<std::size_t>(call)];
    }
  }
}

TEST(Mechanisms, are_listed_and_found) {
  EXPECT_EQ(mechanisms()[0].name, "gate") << "the default comes first";
  EXPECT_FALSE(mechanism_named("gate").open);
  EXPECT_TRUE(has(std::string(mechanism_named("kfd_suspend").notice), "pause briefly"));
  try {
    mechanism_named("kfd_suspense");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.hint, "kfd_suspend")) << error.hint;
  }
  if (std::filesystem::exists("/dev/kfd")) GTEST_SKIP() << "this machine has the driver";
  EXPECT_THROW(mechanism_named("kfd_suspend").open({}), Error);
}

}  // namespace
}  // namespace weir::testing
