#include "amd/kfd/tracer.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>

namespace weir::kfd {

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

// A tracee can be detached only while it is stopped, and the signal that stopped it must not be lost.
int stop_tracing(int pid) noexcept {
  int status = 0;
  if (ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) {
    const int error = errno;
    waitpid(pid, &status, WNOHANG | __WALL);  // it has ended: its parent hears of that once its tracer has
    return -error;
  }
  while (waitpid(pid, &status, __WALL) < 0)
    if (errno != EINTR) return -errno;
  if (!WIFSTOPPED(status)) return -ESRCH;  // it has ended
  const bool is_event = status >> 16 != 0;
  const long signal = is_event ? 0 : WSTOPSIG(status);
  return ptrace(PTRACE_DETACH, pid, nullptr, signal) == 0 ? 0 : -errno;
}

}  // namespace weir::kfd
