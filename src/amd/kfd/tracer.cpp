#include "amd/kfd/tracer.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace weir::kfd {
namespace {

constexpr int kTries = 10;  // of a millisecond each

}  // namespace

int trace(int pid) noexcept { return ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 0 : -errno; }

bool attend_traced(int pid) noexcept {
  for (;;) {
    int status = 0;
    const int found = waitpid(pid, &status, WNOHANG | __WALL);
    if (found == 0 || (found < 0 && errno == EINTR)) return true;
    if (found < 0 || !WIFSTOPPED(status)) return false;
    const int event = status >> 16;
    const bool is_group_stop = event == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
    const long signal = event == 0 ? WSTOPSIG(status) : 0;
    if (is_group_stop)
      ptrace(PTRACE_LISTEN, pid, nullptr, nullptr);
    else
      ptrace(PTRACE_CONT, pid, nullptr, signal);
  }
}

// A tracee can be detached only while it is stopped, and the signal that stopped it must not be lost. It does not stop
// while it sleeps uninterruptibly or waits for a child of vfork(), nor once its main thread alone has ended.
int stop_tracing(int pid) noexcept {
  int status = 0;
  if (ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) {
    const int error = errno;
    waitpid(pid, &status, WNOHANG | __WALL);  // it has ended: its parent is notified once its tracer has been
    return -error;
  }
  for (int tries = 0;; ++tries) {
    const int found = waitpid(pid, &status, WNOHANG | __WALL);
    if (found > 0) break;
    if (found < 0 && errno != EINTR) return -errno;
    if (tries == kTries) return -EAGAIN;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!WIFSTOPPED(status)) return -ESRCH;  // it has ended
  const bool is_event = status >> 16 != 0;
  const long signal = is_event ? 0 : WSTOPSIG(status);
  return ptrace(PTRACE_DETACH, pid, nullptr, signal) == 0 ? 0 : -errno;
}

}  // namespace weir::kfd
