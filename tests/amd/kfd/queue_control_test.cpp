// Suspending and resuming queues against a model of the driver: each refusal in its order, what the bits mean, and that
// nothing stays suspended whatever fails, throws or ends the process.
#include "amd/kfd/queue_control.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "base/error.h"
#include "support/fake_kfd.h"
#include "support/message_of.h"
#include "support/text.h"

namespace weir::kfd {
namespace {

using testing::FakeKfd;
using State = FakeKfd::QueueState;
using Ids = std::vector<std::uint32_t>;

constexpr int kVictim = 200, kTenant = 300;

// A victim with three queues, and somebody else on the same GPU and on another one.
FakeKfd populated() {
  FakeKfd kfd;
  kfd.processes[kVictim].queues = {{1, {}}, {2, {}}, {5, {}}};
  kfd.processes[kTenant].queues = {{1, {.state = State::active}}, {2, {.gpu_id = 2, .state = State::active}}};
  kfd.processes[kfd.self].queues = {};
  return kfd;
}

Ids ids_of(const std::vector<QueueSnapshot>& queues) {
  Ids ids;
  for (const QueueSnapshot& queue : queues) ids.push_back(queue.queue_id);
  return ids;
}

TEST(QueueControl, suspends_and_resumes_another_process) {
  FakeKfd kfd = populated();
  {
    QueueControl control(kfd, kVictim);
    const auto queues = control.queues();
    EXPECT_EQ(ids_of(queues), (Ids{1, 2, 5}));
    EXPECT_TRUE(queues[0].is_new()) << "as it was before we looked";
    EXPECT_TRUE(queues[0].is_compute());
    const SuspendOutcome outcome = control.suspend({1, 5});
    EXPECT_TRUE(outcome.is_whole());
    EXPECT_EQ(outcome.suspended, (Ids{1, 5}));
    EXPECT_EQ(outcome.took_ns, kfd.suspend_ns);
    EXPECT_EQ(kfd.suspended(), 2u);
    const ResumeOutcome resumed = control.resume();
    EXPECT_EQ(resumed.resumed, (Ids{1, 5}));
    EXPECT_EQ(resumed.took_ns, kfd.resume_ns);
    EXPECT_FALSE(control.has_suspended());
  }
  EXPECT_EQ(kfd.log, (std::vector<std::string>{"version 100", "attach 200", "enable 200", "snapshot 200",
                                               "suspend 200: 1 5", "resume 200: 1 5", "disable 200", "detach 200"}));
}

TEST(QueueControl, its_own_process_needs_its_runtime_enabled_first) {
  FakeKfd kfd = populated();
  kfd.processes[kfd.self].runtime = RuntimeState::disabled;
  {
    QueueControl control(kfd, kfd.self);
  }
  EXPECT_EQ(kfd.log,
            (std::vector<std::string>{"version 100", "runtime 100", "enable 100", "disable 100", "no runtime 100"}));
  // ROCm has enabled it: that is not ours to undo.
  kfd = populated();
  {
    QueueControl control(kfd, kfd.self);
  }
  EXPECT_EQ(kfd.log, (std::vector<std::string>{"version 100", "runtime 100", "enable 100", "disable 100"}));
  kfd = populated();
  kfd.processes[kfd.self] = {.runtime = RuntimeState::disabled, .queues = {{1, {}}}};
  EXPECT_TRUE(has(message_of([&] { QueueControl control(kfd, kfd.self); }), "it has queues already"));
}

struct Rung {
  const char* name;
  std::function<void(FakeKfd&)> spoil;
  const char *what, *hint;
};

// In the order in which the driver looks.
TEST(QueueControl, every_rung_of_the_ladder_is_explained) {
  const Rung rungs[] = {
      {"old", [](FakeKfd& k) { k.interface = {1, 12}; }, "interface is 1.12, which cannot suspend", "update amdgpu"},
      {"other major", [](FakeKfd& k) { k.interface = {2, 0}; }, "interface is 2.0", "1.13"},
      {"no process", [](FakeKfd& k) { k.processes.erase(kVictim); }, "attaching of process 200 was refused: no such",
       "ended"},
      {"forbidden", [](FakeKfd& k) { k.processes[kVictim].may_be_traced = false; }, "it may not be traced",
       "ptrace_scope"},
      {"debugged", [](FakeKfd& k) { k.processes[kVictim].is_traced = true; }, "it may not be traced",
       "debugger already"},
      {"no scheduler", [](FakeKfd& k) { k.sched_policy = 2; }, "sched_policy=2", "sched_policy=0"},
      {"sampled", [](FakeKfd& k) { k.processes[kVictim].is_sampled = true; }, "PC sampling is active", "rocprofv3"},
      {"enabled", [](FakeKfd& k) { k.processes[kVictim].is_enabled = true; }, "a debugger has enabled it already",
       "rocgdb"},
      {"no runtime", [](FakeKfd& k) { k.processes[kVictim].runtime = RuntimeState::disabled; },
       "its runtime is not enabled", "hsa_init"},
  };
  for (const Rung& rung : rungs) {
    FakeKfd kfd = populated();
    rung.spoil(kfd);
    const std::string message = message_of([&] { QueueControl control(kfd, kVictim); });
    EXPECT_TRUE(has(message, rung.what)) << rung.name << ": " << message;
    EXPECT_TRUE(has(message, rung.hint)) << rung.name << ": " << message;
    if (kfd.processes.contains(kVictim) && std::string_view(rung.name) != "debugged") {
      EXPECT_FALSE(kfd.processes[kVictim].is_traced) << rung.name << ": it was not let go";
    }
  }
}

TEST(QueueControl, what_changes_meanwhile_is_explained_too) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  control.queues();
  kfd.processes[kVictim].is_traced = false;
  EXPECT_TRUE(has(message_of([&] { control.suspend({1}); }), "not traced by this thread any more"));
  kfd.processes[kVictim].is_traced = true;
  kfd.processes[kVictim].is_enabled = false;
  EXPECT_TRUE(has(message_of([&] { control.queues(); }), "interface is not enabled for it"));
  EXPECT_EQ(kfd.suspended(), 0u);
}

TEST(QueueControl, unknown_errors_have_their_number) {
  const Refusal refusal = explain(TrapStep::suspend, EIO, 7, false);
  EXPECT_TRUE(has(refusal.what, "suspending queues of process 7 was refused")) << refusal.what;
  EXPECT_TRUE(has(refusal.what, "(error 5)")) << refusal.what;
  EXPECT_TRUE(has(explain(TrapStep::suspend, EPERM, 7, true).hint, "two processes"));
  EXPECT_TRUE(has(explain(TrapStep::enable, ENOTTY, 7, false).hint, "1.13"));
}

TEST(QueueControl, a_new_queue_is_invalid_until_it_was_looked_at) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  const SuspendOutcome early = control.suspend({1});
  EXPECT_EQ(early.invalid, Ids{1});
  EXPECT_TRUE(early.suspended.empty());
  EXPECT_FALSE(control.has_suspended());
  control.queues();
  EXPECT_TRUE(control.suspend({1}).is_whole());
}

TEST(QueueControl, bits_tell_which_queues_were_not_suspended) {
  FakeKfd kfd = populated();
  kfd.processes[kVictim].queues[2].is_stuck = true;
  QueueControl control(kfd, kVictim);
  control.queues();
  const SuspendOutcome outcome = control.suspend({1, 2, 5, 77});
  EXPECT_EQ(outcome.suspended, (Ids{1, 5}));
  EXPECT_EQ(outcome.failed, Ids{2});
  EXPECT_EQ(outcome.invalid, Ids{77});
  EXPECT_EQ(kfd.suspended(), 3u) << "the driver counts the stuck one as suspended";
  control.resume();
  EXPECT_EQ(kfd.suspended(), 0u);
  EXPECT_EQ(kfd.log.back(), "resume 200: 1 2 5");
}

TEST(QueueControl, a_suspension_is_whole_or_none) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  control.queues();
  EXPECT_TRUE(has(message_of([&] { Suspension all(control, {1, 77}); }), "queues 77 are new, being destroyed"));
  EXPECT_EQ(kfd.suspended(), 0u);
  kfd.processes[kVictim].queues[2].is_stuck = true;
  EXPECT_TRUE(has(message_of([&] { Suspension all(control, {1, 2}); }), "did not let go of queues 2"));
  EXPECT_EQ(kfd.suspended(), 0u);
  {
    const Suspension some(control, {1, 5});
    EXPECT_EQ(kfd.suspended(), 2u);
    EXPECT_EQ(some.took_ns(), kfd.suspend_ns);
  }
  EXPECT_EQ(kfd.suspended(), 0u);
}

TEST(QueueControl, a_count_that_contradicts_the_bits_is_an_error) {
  FakeKfd kfd = populated();
  kfd.miscount = 1;
  QueueControl control(kfd, kVictim);
  control.queues();
  EXPECT_TRUE(has(message_of([&] { control.suspend({1}); }), "says that 2 queues are suspended"));
  EXPECT_EQ(kfd.suspended(), 0u);
}

TEST(QueueControl, a_queue_is_suspended_once) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  control.queues();
  control.suspend({1});
  EXPECT_TRUE(has(message_of([&] { control.suspend({2, 1}); }), "queue 1 is suspended already"));
  control.suspend({2});
  EXPECT_EQ(kfd.suspended(), 2u);
  EXPECT_EQ(control.resume().resumed, (Ids{1, 2}));
  EXPECT_TRUE(control.resume().resumed.empty());
}

TEST(QueueControl, who_destroys_a_suspended_queue_waits_for_us) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  control.queues();
  control.suspend({1, 2});
  EXPECT_FALSE(kfd.destroy_queue(kVictim, 1));
  EXPECT_EQ(control.resume().resumed, (Ids{1, 2}));
  EXPECT_EQ(kfd.processes[kVictim].queues[1].state, State::destroyed);
  EXPECT_EQ(control.suspend({1, 2}).invalid, Ids{1});
  kfd.processes[kVictim].queues[2].state = State::destroyed;  // its process was killed
  EXPECT_EQ(control.resume().gone, Ids{2});
}

TEST(QueueControl, arrays_have_limits) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  EXPECT_TRUE(has(message_of([&] { control.suspend({}); }), "no queue to suspend"));
  EXPECT_TRUE(has(message_of([&] { control.suspend(Ids(1025, 0)); }), "1025 queues cannot be suspended"));
  EXPECT_TRUE(has(message_of([&] { control.suspend({3, 3}); }), "queue 3 is named twice"));
  EXPECT_TRUE(has(message_of([&] { control.suspend({kQueueFailed}); }), "no id is that large"));
  for (std::uint32_t id = 0; id < 1024; ++id) kfd.processes[kVictim].queues[id] = {};
  const Ids all = ids_of(control.queues());
  EXPECT_EQ(all.size(), 1024u);
  EXPECT_TRUE(control.suspend(all).is_whole()) << "none of them was left new";
}

TEST(QueueControl, one_suspend_disturbs_every_tenant_of_that_gpu) {
  for (const bool is_mes : {false, true}) {
    FakeKfd kfd = populated();
    kfd.is_mes = is_mes;
    QueueControl control(kfd, kVictim);
    control.queues();
    control.suspend({1});
    EXPECT_EQ(kfd.processes[kTenant].queues[1].remapped, is_mes ? 0 : 1);
    EXPECT_EQ(kfd.processes[kTenant].queues[2].remapped, 0) << "another GPU";
  }
  EXPECT_TRUE(has(std::string(kSuspendNotice), "every dynamic queue of that GPU"));
}

TEST(QueueControl, belongs_to_one_thread) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  std::string message;
  std::thread([&] { message = message_of([&] { control.queues(); }); }).join();
  EXPECT_TRUE(has(message, "another thread"));
}

// Every call fails in turn, before or after it has done its work; the caller goes on where it can.
TEST(QueueControl, nothing_stays_suspended_whichever_call_fails) {
  int scenarios = 0;
  for (const auto failing : {FakeKfd::Failing::before, FakeKfd::Failing::after}) {
    for (int error : {EIO, EPERM, EINVAL, EFAULT, EBUSY, ESRCH}) {
      bool was_reached = true;
      for (int call = 0; was_reached; ++call) {
        FakeKfd kfd = populated();
        kfd.failing = failing;
        kfd.fail_error = error;
        kfd.fail_call = call;
        try {
          QueueControl control(kfd, kVictim);
          control.queues();
          {
            Suspension suspension(control, {1, 2});
            EXPECT_EQ(kfd.suspended(), 2u);
            suspension.resume();
          }
          control.suspend({1, 5});
          control.resume();
          control.suspend({2});
        } catch (const Error& error) {
          EXPECT_FALSE(error.hint.empty()) << error.what();
        }
        EXPECT_EQ(kfd.suspended(), 0u) << "call " << call << ": " << kfd.log[static_cast<std::size_t>(call)];
        was_reached = call < kfd.calls;
        ++scenarios;
      }
    }
  }
  EXPECT_GT(scenarios, 100);
}

TEST(QueueControl, nothing_stays_suspended_when_the_caller_throws) {
  for (int point = 0; point < 4; ++point) {
    FakeKfd kfd = populated();
    try {
      QueueControl control(kfd, kVictim);
      if (point == 0) throw point;
      control.queues();
      if (point == 1) throw point;
      const Suspension suspension(control, {1, 2});
      if (point == 2) throw point;
      control.suspend({5});
      throw point;
    } catch (int) {
    }
    EXPECT_EQ(kfd.suspended(), 0u) << point;
    EXPECT_EQ(kfd.log.back(), "detach 200") << point;
  }
}

// Where even disabling is refused, that is said.
TEST(QueueControl, queues_that_cannot_be_resumed_are_named) {
  FakeKfd kfd = populated();
  QueueControl control(kfd, kVictim);
  control.queues();
  control.suspend({1, 2});
  kfd.processes[kVictim].is_sampled = true;
  EXPECT_TRUE(has(message_of([&] { control.resume(); }), "queues 1, 2 are still suspended"));
  EXPECT_TRUE(control.has_suspended());
  kfd.processes[kVictim].is_sampled = false;
  EXPECT_EQ(control.resume().resumed, (Ids{1, 2}));
}

TEST(DebugTrap, issues_no_number_of_a_vendors_fork) {
  EXPECT_TRUE(may_issue(0x80084b01));
  EXPECT_TRUE(may_issue(0xc0104b25));
  EXPECT_TRUE(may_issue(0xc0204b26));
  for (unsigned long size = 0; size < 256; ++size)
    for (const unsigned long direction : {0ul, 1ul, 2ul, 3ul})
      for (unsigned long number = 0x80; number < 0x100; ++number)
        EXPECT_FALSE(may_issue(direction << 30 | size << 16 | 'K' << 8 | number));
}

// Tells the parent over a pipe what was resumed.
class TellingTrap final : public DebugTrap {
 public:
  explicit TellingTrap(int pipe) : pipe_(pipe) {}
  int version(InterfaceVersion* version) noexcept override { return *version = {1, 17}, 0; }
  int own_pid() const noexcept override { return 1; }
  int attach(int) noexcept override { return 0; }
  int detach(int) noexcept override { return tell('d'); }
  bool attend(int) noexcept override { return true; }
  int runtime_enable() noexcept override { return 0; }
  int runtime_disable() noexcept override { return 0; }
  int enable(int, std::uint64_t, RuntimeState* state) noexcept override { return *state = RuntimeState::enabled, 0; }
  int disable(int) noexcept override { return tell('D'); }
  int suspend_queues(int, std::span<std::uint32_t> ids, std::uint64_t, std::uint32_t) noexcept override {
    return tell('s'), static_cast<int>(ids.size());
  }
  int resume_queues(int, std::span<std::uint32_t> ids) noexcept override {
    return tell('r'), static_cast<int>(ids.size());
  }
  int queue_snapshot(int, std::uint64_t, std::span<QueueSnapshot>) noexcept override { return 0; }
  std::int64_t now_ns() noexcept override { return 0; }

 private:
  int tell(char what) const noexcept { return write(pipe_, &what, 1) == 1 ? 0 : -EIO; }
  int pipe_;
};

struct Ended {
  std::string reported;
  int status = 0;
};

// What a child process tells that suspends queues and then does something final.
Ended ended_by(const std::function<void()>& body, const std::function<void()>& before = [] {}) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGTERM, SIGINT, SIGSEGV, SIGABRT}) ::signal(signal, SIG_DFL);
    close(ends[0]);
    before();
    TellingTrap trap(ends[1]);
    QueueControl control(trap, 7);
    control.suspend({1});
    body();
    _exit(99);
  }
  close(ends[1]);
  Ended ended;
  char byte = 0;
  while (read(ends[0], &byte, 1) == 1) ended.reported += byte;
  close(ends[0]);
  EXPECT_EQ(waitpid(child, &ended.status, 0), child);
  return ended;
}

TEST(ResumeGuard, signals_that_end_the_process_resume_first) {
  for (const int signal : {SIGTERM, SIGINT, SIGSEGV, SIGABRT}) {
    const Ended ended = ended_by([&] { raise(signal); });
    EXPECT_EQ(ended.reported, "srD") << signal;
    EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == signal) << signal << " " << ended.status;
  }
}

TEST(ResumeGuard, so_does_leaving_without_destructors) {
  const Ended ended = ended_by([] { std::exit(3); });
  EXPECT_EQ(ended.reported, "srD");
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 3);
}

TEST(ResumeGuard, a_forked_child_resumes_nothing) {
  const Ended ended = ended_by([] {
    const pid_t child = fork();
    if (child == 0) {
      raise(SIGTERM);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    _exit(0);
  });
  EXPECT_EQ(ended.reported, "s");
}

TEST(ResumeGuard, a_program_that_handles_a_signal_itself_keeps_it) {
  static volatile sig_atomic_t handled = 0;
  const auto handle = [] { ::signal(SIGTERM, [](int) { handled = 1; }); };
  const auto raise_it = [] {
    raise(SIGTERM);
    _exit(handled);
  };
  for (const Ended& ended : {ended_by(raise_it, handle), ended_by([&] { handle(), raise_it(); })}) {
    EXPECT_EQ(ended.reported, "s");
    EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 1);
  }
}

TEST(ResumeGuard, handlers_are_as_before_when_nothing_is_suspended) {
  struct sigaction before{}, during{}, after{};
  FakeKfd kfd = populated();
  sigaction(SIGSEGV, nullptr, &before);
  {
    QueueControl control(kfd, kVictim);
    control.queues();
    control.suspend({1});
    sigaction(SIGSEGV, nullptr, &during);
  }
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_NE(during.sa_handler, before.sa_handler);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

}  // namespace
}  // namespace weir::kfd
