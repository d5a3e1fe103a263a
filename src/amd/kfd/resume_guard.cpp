// Resumes suspended queues when this process ends by a signal or by exit(). Knows no particular queue.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "amd/kfd/queue_control.h"
#include "base/error.h"
#include "base/stop.h"

namespace weir::kfd {
namespace {

struct Seat {
  std::atomic<DebugTrap*> trap{nullptr};  // released after pid is written; acquired by resume_all()
  int pid = 0;
};
constexpr int kSeats = 16;
std::array<Seat, kSeats> g_seats;
std::atomic<int> g_owner{0};  // the process that suspended the queues

constexpr std::array kEndings = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
constexpr std::array kCrashes = {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
struct Replaced {
  int signal = 0;
  struct sigaction before{};
};
std::array<Replaced, kEndings.size() + kCrashes.size()> g_replaced;  // signal 0: not replaced

std::mutex g_mutex;  // for constructing and destroying guards
int g_guards = 0;

// Async-signal-safe.
void resume_all() noexcept {
  if (g_owner.load(std::memory_order_relaxed) != getpid()) return;
  for (Seat& seat : g_seats) {
    DebugTrap* const trap = seat.trap.exchange(nullptr, std::memory_order_acquire);  // pairs with the guard's release
    if (trap == nullptr) continue;
    // No ids means all queues of the process. Resuming is refused on a thread that is not the tracer; disabling works
    // on any thread, and also resumes.
    trap->resume_queues(seat.pid, {});
    trap->disable(seat.pid);
  }
}

void on_signal(int signal) {
  const int error = errno;
  resume_all();
  for (const Replaced& each : g_replaced)
    if (each.signal == signal) sigaction(signal, &each.before, nullptr);
  raise(signal);  // delivered when this handler returns, with the original effect
  errno = error;
}

void replace(Replaced& each, int signal, bool only_default) {
  struct sigaction ours{};
  ours.sa_handler = on_signal;
  sigfillset(&ours.sa_mask);
  if (sigaction(signal, nullptr, &each.before) != 0) return;
  if (only_default && each.before.sa_handler != SIG_DFL) return;
  if (sigaction(signal, &ours, nullptr) == 0) each.signal = signal;
}

void replace_handlers() {
  std::size_t at = 0;
  for (const int signal : kEndings) replace(g_replaced[at++], signal, true);
  for (const int signal : kCrashes) replace(g_replaced[at++], signal, false);
}

void restore_handlers() {
  for (Replaced& each : g_replaced) {
    struct sigaction now{};
    // A handler that somebody installed later stays.
    if (each.signal != 0 && sigaction(each.signal, nullptr, &now) == 0 && now.sa_handler == on_signal)
      sigaction(each.signal, &each.before, nullptr);
    each.signal = 0;
  }
}

}  // namespace

ResumeGuard::ResumeGuard(DebugTrap& trap, int pid) {
  const std::lock_guard lock(g_mutex);
  static const bool kIsRegistered = std::atexit(resume_all) == 0;
  if (!kIsRegistered) fail("no handler for the program's end could be registered, so no queue is suspended");
  for (int i = 0; i < kSeats && seat_ < 0; ++i)
    if (g_seats[static_cast<std::size_t>(i)].trap.load(std::memory_order_relaxed) == nullptr) seat_ = i;
  if (seat_ < 0) fail("queues of too many processes are suspended at once");
  if (g_guards++ == 0) {
    call_when_cut(resume_all);
    g_owner.store(getpid(), std::memory_order_relaxed);
    replace_handlers();
  }
  Seat& seat = g_seats[static_cast<std::size_t>(seat_)];
  seat.pid = pid;
  seat.trap.store(&trap, std::memory_order_release);  // pairs with the acquire in resume_all()
}

ResumeGuard::~ResumeGuard() {
  const std::lock_guard lock(g_mutex);
  g_seats[static_cast<std::size_t>(seat_)].trap.store(nullptr, std::memory_order_relaxed);
  if (--g_guards == 0) restore_handlers();
}

}  // namespace weir::kfd
