#include "base/user_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/error.h"

namespace weir {
namespace {

std::atomic<pid_t> g_child{0};
std::atomic<int> g_signal{0}, g_own{0};
std::atomic<bool> g_has_own{false};
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

// The program is in the same process group, so it gets signals from the terminal directly; those from others are
// forwarded.
void forward(int signal, siginfo_t* info, void*) {
  if (signal == g_own.load(std::memory_order_relaxed)) {
    g_has_own.store(true, std::memory_order_relaxed);
    return;
  }
  const int kept = errno;
  const pid_t child = g_child.load(std::memory_order_relaxed);
  if (child > 0 && info->si_code <= 0) ::kill(child, signal);
  if (signal != SIGUSR1 && signal != SIGUSR2 && signal != SIGXFSZ) g_signal.store(signal, std::memory_order_relaxed);
  errno = kept;
}

// Blocks `signals` for this thread during the lifetime of this object.
class Blocked {
 public:
  explicit Blocked(std::span<const int> signals) {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : signals) sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

}  // namespace

Forwarding::Forwarding(int own) {
  static_assert(std::size(kSignals) == std::size(decltype(before_){}));
  g_signal.store(0, std::memory_order_relaxed);
  g_own.store(own, std::memory_order_relaxed);
  g_has_own.store(false, std::memory_order_relaxed);
  struct sigaction action{};
  action.sa_sigaction = forward;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN || kSignals[i] == own) sigaction(kSignals[i], &action, nullptr);
  }
}

Forwarding::~Forwarding() {
  g_child.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int Forwarding::take_signal() { return g_signal.exchange(0, std::memory_order_relaxed); }

bool Forwarding::take_own() { return g_has_own.exchange(false, std::memory_order_relaxed); }

int Forwarding::run(const std::vector<std::string>& command, const Variables& variables,
                    const WhileRunning& while_running, int death_signal) {
  std::optional<Process> program;
  try {
    // No signal may arrive between the program's start and storing its pid.
    const Blocked blocked(kSignals);
    ProcessOptions options;
    options.command = command;
    options.variables = variables;
    options.out = ProcessOptions::Output::ours;
    options.death_signal = death_signal;
    options.shares_terminal = &blocked.before();
    program.emplace(std::move(options));
    g_child.store(program->id(), std::memory_order_relaxed);
  } catch (const StartError& error) {
    reject(fmt::format("{}: cannot be executed: {}", command[0], std::strerror(error.code)),
           error.is_missing ? "Is the interpreter that its first line names there?" : "");
  }
  std::int64_t next = while_running ? while_running(program->id()) : INT64_MAX;
  const auto wait_ms = [&] { return std::clamp<std::int64_t>((next - now_ns()) / 1'000'000 + 1, 0, 60'000); };
  while (program->listen(static_cast<int>(wait_ms())))
    if (now_ns() >= next) next = while_running(program->id());
  const ProcessEnd end = program->end();
  // From here on its pid may belong to another process.
  g_child.store(0, std::memory_order_relaxed);
  return end.code();
}

}  // namespace weir
