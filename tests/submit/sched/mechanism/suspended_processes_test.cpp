// The daemon with the mechanism kfd_suspend, its clients and their ends, as real processes: they are really traced, and
// the queues that the driver would suspend are a model of it in memory that all of them share.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <fstream>
#include <new>

#include "amd/kfd/tracer.h"
#include "base/json.h"
#include "submit/sched/daemon.h"
#include "submit/sched/mechanism/queue_suspender.h"
#include "support/text.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

// The driver, as far as it is seen from here: each process has one queue. It outlives the daemon, as a driver does.
struct Driver {
  struct Process {
    std::atomic<int> pid{0};
    std::atomic<int> debugger{0};  // who has enabled the interface
    std::atomic<bool> is_suspended{false};
    std::atomic<int> suspensions{0};
    std::atomic<int> work{0};  // that its queue has done
  };
  std::array<Process, 4> processes;
  std::atomic<bool> refuses{false};  // no queue may be suspended

  Process& of(int pid) {
    for (Process& each : processes) {
      int nobody = 0;
      if (each.pid == pid || each.pid.compare_exchange_strong(nobody, pid)) return each;
    }
    std::abort();
  }
  // When a process's memory goes, the driver disables what it had enabled (kfd_process_notifier_release).
  void memory_gone(int debugger) {
    for (Process& each : processes) {
      int ended = debugger;
      if (each.debugger.compare_exchange_strong(ended, 0)) each.is_suspended = false;
    }
  }
};

class SharedTrap final : public kfd::DebugTrap {
 public:
  explicit SharedTrap(Driver& driver) : driver_(driver) {}
  int version(kfd::InterfaceVersion* version) noexcept override { return *version = {1, 17}, 0; }
  int own_pid() const noexcept override { return ::getpid(); }
  int attach(int pid) noexcept override { return kfd::trace(pid); }
  int detach(int pid) noexcept override { return kfd::stop_tracing(pid); }
  bool attend(int pid) noexcept override { return kfd::attend_traced(pid); }
  int runtime_enable() noexcept override { return 0; }
  int runtime_disable() noexcept override { return 0; }
  int enable(int pid, std::uint64_t, kfd::RuntimeState* state) noexcept override {
    driver_.of(pid).debugger = ::getpid();
    return *state = kfd::RuntimeState::enabled, 0;
  }
  int disable(int pid) noexcept override {
    driver_.of(pid).is_suspended = false;
    driver_.of(pid).debugger = 0;
    return 0;
  }
  int suspend_queues(int pid, std::span<std::uint32_t> ids, std::uint64_t, std::uint32_t) noexcept override {
    if (driver_.refuses) return -EPERM;
    ++driver_.of(pid).suspensions;
    driver_.of(pid).is_suspended = true;
    return static_cast<int>(ids.size());
  }
  int resume_queues(int pid, std::span<std::uint32_t> ids) noexcept override {
    driver_.of(pid).is_suspended = false;
    return static_cast<int>(ids.size());
  }
  int queue_snapshot(int, std::uint64_t, std::span<kfd::QueueSnapshot> queues) noexcept override {
    if (!queues.empty()) queues[0] = {.queue_id = 1, .gpu_id = 1, .queue_type = 2};
    return 1;
  }
  std::int64_t now_ns() noexcept override { return weir::now_ns(); }

 private:
  Driver& driver_;
};

int tracer_of(pid_t process) {
  for (const std::string& line : lines_of(content("/proc/" + std::to_string(process) + "/status")))
    if (line.starts_with("TracerPid:")) return std::stoi(line.substr(10));
  return -1;
}

class SuspendedProcesses : public ::testing::Test {
 protected:
  struct Scene;
  SuspendedProcesses()
      : driver(*new(::mmap(nullptr, sizeof(Driver), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                   Driver) {
    mechanism = {.name = "kfd_suspend", .notice = "", .open = [this](const Settings& settings) {
                   return std::make_unique<QueueSuspender>(std::make_unique<SharedTrap>(driver), settings);
                 }};
    options = folder.options();
    options.mechanism = &mechanism;
    options.settings.ageing_ns = 0;
  }
  ~SuspendedProcesses() override { ::munmap(&driver, sizeof(Driver)); }
  void SetUp() override {
    Child other([]() -> int {
      for (;;) ::pause();
    });
    if (kfd::trace(other.pid()) != 0) GTEST_SKIP() << "processes may not be traced here";
    kfd::stop_tracing(other.pid());
  }

  // A client that always has work on the device, which its queue does while it is not suspended.
  Child start_victim(Terms terms = kPatient) {
    return Child([this, terms]() -> int {
      const auto connection = join_soon(folder.socket(), terms);
      Driver::Process& self = driver.of(::getpid());
      connection->gate().enter();
      for (;;) {
        if (!self.is_suspended) ++self.work;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  void await_work(Driver::Process& process) {
    const int before = process.work;
    until([&] { return process.work > before + 5; });
  }
  Json status_of(pid_t pid) {
    const Json status = ask_status(folder.socket());
    for (const Json& client : status.at("clients"))
      if (client.at("pid") == pid) return client;
    return nullptr;
  }

  SocketFolder folder;
  Driver& driver;
  Mechanism mechanism;
  ServerOptions options;
};

// A daemon, a client at work, and an urgent one whose request has just taken the queue of the first off the device.
struct SuspendedProcesses::Scene {
  explicit Scene(SuspendedProcesses& test)
      : daemon(daemon_process(test.options)), victim(test.start_victim()), queue(test.driver.of(victim.pid())) {
    test.await_work(queue);
    urgent = join_soon(test.folder.socket(), kUrgent);
    urgent->gate().enter();
    until([&] { return queue.is_suspended.load(); });
  }
  Child daemon, victim;
  Driver::Process& queue;
  std::unique_ptr<Connection> urgent;
};

TEST_F(SuspendedProcesses, a_client_is_off_the_device_while_an_urgent_request_runs) {
  Child daemon = daemon_process(options);
  Child victim = start_victim();
  Driver::Process& queue = driver.of(victim.pid());
  await_work(queue);
  const auto urgent = join_soon(folder.socket(), kUrgent);
  for (int request = 1; request <= 3; ++request) {
    urgent->gate().enter();
    until([&] { return queue.is_suspended.load(); });
    const Json status = status_of(victim.pid());
    EXPECT_EQ(status["mechanism"], "kfd_suspend") << status.dump();
    EXPECT_TRUE(status["mechanism_reason"].is_null()) << status.dump();
    EXPECT_EQ(status["waits_for"][0]["pid"], ::getpid());
    const int work = queue.work;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LE(queue.work - work, 1);
    urgent->gate().leave();
    until([&] { return !queue.is_suspended; });
    await_work(queue);
    EXPECT_GE(queue.suspensions, request);
  }
  const Json own = status_of(::getpid());
  EXPECT_EQ(own["mechanism"], "gate");
  EXPECT_EQ(own["suspensions"], 0);
}

TEST_F(SuspendedProcesses, nobody_is_suspended_who_is_alone_or_the_most_urgent) {
  Child daemon = daemon_process(options);
  Child victim = start_victim();
  Driver::Process& queue = driver.of(victim.pid());
  await_work(queue);
  {
    const auto idle = join_soon(folder.socket(), kUrgent);
    const auto patient = join_soon(folder.socket(), {.priority = -10});
    patient->gate().enter();  // an equal
    await_work(queue);
    patient->gate().leave();
  }
  await_work(queue);
  EXPECT_EQ(queue.suspensions, 0);
  EXPECT_EQ(tracer_of(victim.pid()), 0) << "nobody who need not wait is traced";
}

TEST_F(SuspendedProcesses, an_endless_urgent_request_starves_nobody_for_longer_than_ageing_says) {
  options.settings.ageing_ns = 20'000'000;
  Scene scene(*this);
  const int work = scene.queue.work;
  until([&] { return scene.queue.suspensions >= 3 && scene.queue.work > work + 5; });  // and comes back in between
}

TEST_F(SuspendedProcesses, a_daemon_that_is_asked_to_end_resumes_everybody) {
  Scene scene(*this);
  ask_stop(folder.socket());
  EXPECT_FALSE(scene.queue.is_suspended) << "done before it says that it has ended";
  EXPECT_EQ(scene.daemon.wait(), 0);
  EXPECT_EQ(tracer_of(scene.victim.pid()), 0);
  await_work(scene.queue);
}

TEST_F(SuspendedProcesses, a_daemon_that_crashes_resumes_everybody) {
  Scene scene(*this);
  scene.daemon.send(SIGABRT);
  scene.daemon.wait();
  EXPECT_FALSE(scene.queue.is_suspended) << "its guard resumes before it dies";
  await_work(scene.queue);
}

// Nothing of the daemon runs after SIGKILL: the kernel ends the tracing, and the driver disables the interface.
TEST_F(SuspendedProcesses, after_kill_9_of_the_daemon_everybody_goes_on) {
  Scene scene(*this);
  const int pid = scene.daemon.pid();
  EXPECT_EQ(scene.queue.debugger, pid);
  scene.daemon.send(SIGKILL);
  EXPECT_EQ(scene.daemon.wait(), -SIGKILL);
  driver.memory_gone(pid);
  EXPECT_FALSE(scene.queue.is_suspended);
  EXPECT_EQ(tracer_of(scene.victim.pid()), 0);
  await_work(scene.queue);
  until([&] { return !scene.urgent->is_alive(); });  // and is not held any more
}

TEST_F(SuspendedProcesses, signals_and_ends_of_a_suspended_client_reach_it_and_its_parent) {
  Child daemon = daemon_process(options);
  for (const int signal : {SIGTERM, SIGKILL}) {
    Child victim = start_victim();
    Driver::Process& queue = driver.of(victim.pid());
    const auto urgent = join_soon(folder.socket(), kUrgent);
    await_work(queue);
    urgent->gate().enter();
    until([&] { return queue.is_suspended.load(); });
    EXPECT_GT(tracer_of(victim.pid()), 0);
    victim.send(signal);
    EXPECT_EQ(victim.wait(), -signal);
    until([&] { return !urgent->gate().is_shared(); });
    until([&] { return queue.debugger == 0; });  // its interface is disabled
  }
}

TEST_F(SuspendedProcesses, where_the_driver_refuses_the_gate_holds_and_status_says_why) {
  driver.refuses = true;
  Child daemon = daemon_process(options);
  Child victim = start_victim();
  Driver::Process& queue = driver.of(victim.pid());
  await_work(queue);
  const auto urgent = join_soon(folder.socket(), kUrgent);
  urgent->gate().enter();
  until([&] { return has(status_of(victim.pid())["mechanism_reason"].get<std::string>(), "refused"); });
  EXPECT_EQ(status_of(victim.pid())["mechanism"], "gate");
  EXPECT_EQ(ask_status(folder.socket())["mechanism"], "kfd_suspend");
  await_work(queue);
  const auto patient = join_soon(folder.socket(), kPatient);
  EXPECT_FALSE(patient->gate().try_enter()) << "launches are held all the same";
}

TEST_F(SuspendedProcesses, a_driver_that_is_not_there_is_reported_before_the_daemon_listens) {
  mechanism.open = [](const Settings&) -> std::unique_ptr<Enforcer> { reject("no /dev/kfd on this machine"); };
  EXPECT_THROW(Server{options}, Error);
  EXPECT_EQ(join(folder.socket()), nullptr);
}

}  // namespace
}  // namespace weir::testing
