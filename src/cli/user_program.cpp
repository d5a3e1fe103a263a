#include "cli/user_program.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/clock.h"
#include "base/error.h"
#include "cli/descriptor.h"
#include "cli/process.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

std::atomic<pid_t> g_child{0};
std::atomic<int> g_signal{0};
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

// What the terminal sends goes to the program by itself, which is in our group; what others send is for it as well.
void forward(int signal, siginfo_t* info, void*) {
  const int kept = errno;
  const pid_t child = g_child.load(std::memory_order_relaxed);
  if (child > 0 && info->si_code <= 0) ::kill(child, signal);
  if (signal != SIGUSR1 && signal != SIGUSR2 && signal != SIGXFSZ) g_signal.store(signal, std::memory_order_relaxed);
  errno = kept;
}

// Waits until the child has ended or the time has come, without using the processor meanwhile.
void wait_beside(int child_descriptor, std::int64_t until_ns) {
  const std::int64_t left_ms = (until_ns - now_ns()) / 1'000'000 + 1;
  // Kernels before 5.3 have no descriptors of processes: there we look now and then.
  const std::int64_t most_ms = child_descriptor >= 0 ? 60'000 : 20;
  pollfd wanted{child_descriptor, POLLIN, 0};
  ::poll(&wanted, 1, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, most_ms)));
}

}  // namespace

std::optional<fs::path> find_program(const std::string& name) {
  const auto is_program = [](const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return is_program(name) ? std::optional<fs::path>(name) : std::nullopt;
  const std::string path = environment_variable("PATH").value_or("/usr/bin:/bin");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    if (const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name; is_program(candidate))
      return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> words_behind_mark() {
  const auto& words = own_arguments();
  const auto mark = std::find(words.begin(), words.end(), "--");
  if (mark == words.end()) return std::nullopt;
  return std::vector<std::string>(mark + 1, words.end());
}

Forwarding::Forwarding() {
  static_assert(std::size(kSignals) == std::size(decltype(before_){}));
  g_signal.store(0, std::memory_order_relaxed);
  struct sigaction action{};
  action.sa_sigaction = forward;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

Forwarding::~Forwarding() {
  g_child.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int Forwarding::take_signal() { return g_signal.exchange(0, std::memory_order_relaxed); }

int Forwarding::run(const std::vector<std::string>& command, const Variables& variables, const Beside& beside) {
  sigset_t all, mask;
  sigemptyset(&all);
  for (const int signal : kSignals) sigaddset(&all, signal);
  // None may come between the program's start and our knowing its number.
  ::pthread_sigmask(SIG_BLOCK, &all, &mask);
  int error = 0;
  StartOptions options;
  options.variables = variables;
  options.shares_terminal = true;
  options.mask = &mask;
  options.exec_error = &error;
  pid_t child = 0;
  try {
    child = start_program(command, options);
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    throw;
  }
  g_child.store(child, std::memory_order_relaxed);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  int status = 0;
  if (beside && error == 0) {
    const Descriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    std::int64_t next = beside(child);
    for (;;) {
      const pid_t waited = ::waitpid(child, &status, WNOHANG);
      if (waited == child) break;
      if (waited < 0 && errno != EINTR) fail("lost sight of the program");
      if (now_ns() >= next) {
        next = beside(child);
      } else {
        wait_beside(ended.get(), next);
      }
    }
  } else {
    while (::waitpid(child, &status, 0) < 0)
      if (errno != EINTR) fail("lost sight of the program");
  }
  // Its number may be another's from here on.
  g_child.store(0, std::memory_order_relaxed);
  if (error != 0)
    reject(fmt::format("{}: cannot be executed: {}", command[0], std::strerror(error)),
           error == ENOENT ? "Is the interpreter that its first line names there?" : "");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace weir::cli
