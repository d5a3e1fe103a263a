// Daemons and clients that are killed, stopped and forked while others wait. What must not happen is that somebody
// waits for ever: then a test does not end.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <new>
#include <random>

#include "submit/sched/daemon.h"

namespace weir::testing {
namespace {

using namespace weir::scheduler;

// Counters that a test shares with its children.
struct Shared {
  std::atomic<int> a{0}, b{0};
};
class SharedMemory {
 public:
  SharedMemory()
      : memory_(new(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                    Shared) {}
  ~SharedMemory() { ::munmap(memory_, sizeof(Shared)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Shared* operator->() const { return memory_; }

 private:
  Shared* memory_;
};

// A client that goes in and out for ever.
int work(const std::string& socket, const Terms& terms, std::atomic<int>& done) {
  const auto connection = join_soon(socket, terms);
  for (;;) {
    connection->gate().enter();
    connection->gate().leave();
    ++done;
    std::this_thread::sleep_for(std::chrono::microseconds(50));  // leaves the cores to the others
  }
}

// No ageing: who is behind waits for as long as the other one is there.
ServerOptions without_ageing(const SocketFolder& folder) {
  ServerOptions options = folder.options();
  options.settings.ageing_ns = 0;
  return options;
}

class Processes : public ::testing::Test {
 protected:
  Child start_daemon() { return daemon_process(without_ageing(folder)); }
  // For a child: its turn never ends.
  int stay_in_turn() {
    const auto connection = join_soon(folder.socket(), kUrgent);
    connection->gate().enter();
    shared->a = 1;
    for (;;) ::pause();
  }
  SocketFolder folder;
  SharedMemory shared;
};

TEST_F(Processes, a_client_killed_in_its_turn_keeps_nobody_waiting) {
  Child daemon = start_daemon();
  Child urgent([&] { return stay_in_turn(); });
  until([&] { return shared->a == 1; });
  const auto patient = join_soon(folder.socket(), kPatient);
  EXPECT_FALSE(patient->gate().try_enter());
  std::thread thread([&] { patient->gate().enter(); });
  until([&] { return patient->gate().pending() == 1; });
  urgent.send(SIGKILL);
  thread.join();
  until([&] { return !patient->gate().is_shared(); });
}

TEST_F(Processes, one_stopped_in_its_turn_keeps_nobody_waiting_and_comes_back) {
  Child daemon = start_daemon();
  Child urgent([&] { return work(folder.socket(), kUrgent, shared->a); });
  until([&] { return shared->a > 0; });
  const auto patient = join_soon(folder.socket(), kPatient);
  urgent.send(SIGSTOP);
  for (int i = 0; i < 10; ++i) {
    patient->gate().enter();
    patient->gate().leave();
  }
  const int before = shared->a;
  urgent.send(SIGCONT);
  until([&] { return shared->a > before; });
  EXPECT_TRUE(patient->is_alive());
}

// One that is stopped in its turn counts as gone after a while: the others are not even bound any more.
TEST_F(Processes, one_stopped_in_its_turn_binds_nobody) {
  Child daemon = start_daemon();
  Child urgent([&] { return stay_in_turn(); });
  until([&] { return shared->a == 1; });
  const auto patient = join_soon(folder.socket(), kPatient);
  until([&] { return patient->gate().has_company() && !patient->gate().is_loose(); });
  urgent.send(SIGSTOP);
  until([&] { return !patient->gate().has_company() && patient->gate().is_loose(); });
  EXPECT_NE(patient->gate().try_enter(), 0U);
  patient->gate().leave();
  urgent.send(SIGCONT);
  until([&] { return patient->gate().has_company() && !patient->gate().is_loose(); });
}

TEST_F(Processes, a_daemon_killed_keeps_nobody_waiting) {
  Child daemon = start_daemon();
  const auto urgent = join_soon(folder.socket(), kUrgent), patient = join_soon(folder.socket(), kPatient);
  urgent->gate().enter();
  std::thread thread([&] { patient->gate().enter(); });
  until([&] { return patient->gate().pending() == 1; });
  daemon.send(SIGKILL);
  thread.join();
  until([&] { return !patient->is_alive(); });
}

TEST_F(Processes, a_daemon_stopped_keeps_nobody_waiting_and_is_obeyed_again) {
  Child daemon = start_daemon();
  const auto urgent = join_soon(folder.socket(), kUrgent), patient = join_soon(folder.socket(), kPatient);
  urgent->gate().enter();
  EXPECT_FALSE(patient->gate().try_enter());
  daemon.send(SIGSTOP);
  for (int i = 0; i < 10; ++i) patient->gate().enter();
  EXPECT_TRUE(patient->is_alive());
  patient->gate().leave(10);
  daemon.send(SIGCONT);
  until([&] {
    if (!patient->gate().try_enter()) return true;
    patient->gate().leave();
    return false;
  });
}

// The child of a client that dies must not keep the parent's seat: neither by the socket nor by the board.
TEST_F(Processes, a_client_that_forked_is_gone_when_it_dies) {
  Child daemon = start_daemon();
  Child parent([&] {
    const auto connection = join_soon(folder.socket(), kUrgent);
    connection->gate().enter();
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < 8; ++i) connection->gate().enter();
      shared->a = ::getpid();
      for (;;) ::pause();
    }
    until([&] { return shared->a != 0; });
    for (;;) ::pause();
    return 0;
  });
  until([&] { return shared->a != 0; });
  const auto patient = join_soon(folder.socket(), kPatient);
  EXPECT_FALSE(patient->gate().try_enter());
  parent.send(SIGKILL);
  patient->gate().enter();
  until([&] { return !patient->gate().is_shared(); });
  ::kill(shared->a, SIGKILL);
}

// clone() without the handlers of fork(): the child holds the socket, and the daemon sees by the process that its
// client is gone.
TEST_F(Processes, a_client_whose_socket_lives_on_is_gone_when_it_dies) {
  Child daemon = start_daemon();
  Child parent([&] {
    const auto connection = join_soon(folder.socket(), kUrgent);
    connection->gate().enter();
    const pid_t child = ::_Fork();
    if (child == 0) {
      shared->a = ::getpid();
      for (;;) ::pause();
    }
    for (;;) ::pause();
    return 0;
  });
  until([&] { return shared->a != 0; });
  const auto patient = join_soon(folder.socket(), kPatient);
  parent.send(SIGKILL);
  until([&] { return !patient->gate().is_shared(); });
  patient->gate().enter();
  ::kill(shared->a, SIGKILL);
}

TEST_F(Processes, clients_killed_at_any_instant_disturb_nobody) {
  Child daemon = start_daemon();
  Child steady([&] { return work(folder.socket(), {}, shared->b); });
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    shared->a = 0;
    Child urgent([&] { return work(folder.socket(), round % 2 == 0 ? kUrgent : kPatient, shared->a); });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
    urgent.send(SIGKILL);
    urgent.wait();
    const int before = shared->b;
    until([&] { return shared->b > before + 10; });
  }
  const auto last = join_soon(folder.socket());
  EXPECT_TRUE(last->is_alive());
}

}  // namespace
}  // namespace weir::testing
