#include "base/stop.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace weir {
namespace {

// All of this is read by a signal handler. Orders are relaxed where nothing else is published.
std::atomic<bool> is_interrupted{false}, is_only_counted{false}, is_cut{false};
std::atomic<int> interrupts{0}, first_signal{0}, late_alarms{0};
std::atomic<pid_t> owner{0};  // the process that catches them: a fork that has not executed yet must end nothing
std::atomic<void (*)() noexcept> bell{nullptr};
std::array<std::atomic<void (*)() noexcept>, 4> hooks{};
std::array<std::atomic<pid_t>, 64> groups{};

enum class PlaceState : int { free, claimed, used };
struct RemovedPlace {
  // Released as used after the name is written; acquired by cut(), which claims it, so that the name stays as it is.
  std::atomic<PlaceState> state{PlaceState::free};
  std::array<char, 1024> name{};
};
std::array<RemovedPlace, 32> places;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
                  std::atomic<PlaceState>::is_always_lock_free && std::atomic<void (*)() noexcept>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

constexpr long kPatienceUs = 800'000;  // from the second signal to the end
constexpr long kPeriodUs = 10'000;     // of the alarm from then on
constexpr int kMostAlarms = 100;       // while the end is under way: something in it is stuck, say on a dead disk
constexpr int kDepth = 16;             // of folders that are removed

// Async-signal-safe, unlike opendir() and std::filesystem.
bool remove_tree(int at, const char* name, int depth) noexcept {
  if (::unlinkat(at, name, 0) == 0 || errno == ENOENT) return true;
  if (depth == 0 || (errno != EISDIR && errno != EPERM)) return false;
  const int folder = ::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(dirent64) std::array<char, 2048> buffer;
  for (long got; (got = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size())) > 0;) {
    bool has_removed = false;
    for (long i = 0; i < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer.data() + i);
      i += entry->d_reclen;
      const std::string_view found(entry->d_name);
      if (found != "." && found != "..") has_removed |= remove_tree(folder, entry->d_name, depth - 1);
    }
    if (has_removed) ::lseek(folder, 0, SEEK_SET);  // removals may move entries in front of the position
  }
  ::close(folder);
  return ::unlinkat(at, name, AT_REMOVEDIR) == 0;
}

void signal_groups(int signal) noexcept {
  for (const std::atomic<pid_t>& each : groups)
    if (const pid_t group = each.load(std::memory_order_relaxed); group > 0) ::kill(-group, signal);
}

// Async-signal-safe. False: another thread is doing it.
bool leave_nothing() noexcept {
  if (is_cut.exchange(true, std::memory_order_relaxed)) return false;
  for (const auto& each : hooks)
    if (const auto call = each.load(std::memory_order_relaxed)) call();
  signal_groups(SIGKILL);
  for (RemovedPlace& place : places) {
    PlaceState expected = PlaceState::used;
    if (!place.state.compare_exchange_strong(expected, PlaceState::claimed, std::memory_order_acquire))
      continue;  // pairs with the release in its claim
    // Whoever still writes there may make it fail.
    for (int i = 0; i < 5 && !remove_tree(AT_FDCWD, place.name.data(), kDepth); ++i) ::usleep(10'000);
  }
  return true;
}

// Ends the process in a signal handler, whatever its threads are doing.
void cut() noexcept {
  const int code = 128 + first_signal.load(std::memory_order_relaxed);
  if (owner.load(std::memory_order_relaxed) != ::getpid()) ::_exit(code);
  if (!leave_nothing()) return;
  pollfd err{STDERR_FILENO, POLLOUT, 0};
  constexpr std::string_view kMessage = "weir: ended by a second signal; what was saved before is kept\n";
  if (::poll(&err, 1, 0) == 1 && (err.revents & POLLOUT) != 0) [[maybe_unused]]
    const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(code);
}

void on_alarm(int) {
  const int error = errno;
  if (is_cut.load(std::memory_order_relaxed) && late_alarms.fetch_add(1, std::memory_order_relaxed) >= kMostAlarms)
    ::_exit(128 + first_signal.load(std::memory_order_relaxed));
  cut();
  errno = error;
}

void on_signal(int signal) {
  if (owner.load(std::memory_order_relaxed) != ::getpid()) ::_exit(128 + signal);  // as without this handler
  const int error = errno;
  const bool is_first = !is_interrupted.exchange(true, std::memory_order_relaxed);
  if (is_first) first_signal.store(signal, std::memory_order_relaxed);
  if (is_first || signal != SIGUSR1) {
    const int count = 1 + interrupts.fetch_add(1, std::memory_order_relaxed);
    if (const auto call = bell.load(std::memory_order_relaxed)) call();
    const bool is_counted = is_only_counted.load(std::memory_order_relaxed);
    if (count > 2 && !is_counted) cut();
    if (count == 2 && !is_counted) {
      signal_groups(SIGTERM);
      // Repeats, in case a thread that blocks it is chosen, or the end takes too long.
      const itimerval patience{{0, kPeriodUs}, {0, kPatienceUs}};
      ::setitimer(ITIMER_REAL, &patience, nullptr);
    }
  }
  errno = error;
}

void install(int signal, void (*handler)(int), int more_flags = 0) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | more_flags;
  ::sigaction(signal, &action, nullptr);
}

template <class T, std::size_t N>
void replace_first(std::array<std::atomic<T>, N>& values, T before, T after) noexcept {
  for (std::atomic<T>& each : values) {
    T expected = before;
    if (each.compare_exchange_strong(expected, after, std::memory_order_relaxed)) return;
  }
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  owner.store(::getpid(), std::memory_order_relaxed);
  install(SIGALRM, on_alarm, SA_NODEFER);  // it also ends an end that is stuck
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) install(signal, on_signal);
  struct sigaction hangup{};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) install(SIGHUP, on_signal);
  return is_interrupted;
}

const std::atomic<int>& count_interrupts() {
  is_only_counted.store(true, std::memory_order_relaxed);
  catch_interrupts();
  return interrupts;
}

int first_interrupt() noexcept { return first_signal.load(std::memory_order_relaxed); }

void on_interrupt(void (*call)() noexcept) noexcept { bell.store(call, std::memory_order_relaxed); }

void call_when_cut(void (*call)() noexcept) noexcept {
  for (const auto& each : hooks)
    if (each.load(std::memory_order_relaxed) == call) return;
  replace_first<void (*)() noexcept>(hooks, nullptr, call);
}

void remember_group(pid_t group) noexcept { replace_first<pid_t>(groups, 0, group); }
void forget_group(pid_t group) noexcept { replace_first<pid_t>(groups, group, 0); }

void end_at_once(int code) noexcept {
  if (owner.load(std::memory_order_relaxed) == ::getpid()) leave_nothing();
  ::_exit(code);
}

RemovedWhenCut::RemovedWhenCut(const std::filesystem::path& path) noexcept {
  const std::string& name = path.native();
  for (std::size_t i = 0; i < places.size() && name.size() < places[i].name.size(); ++i) {
    PlaceState expected = PlaceState::free;
    if (!places[i].state.compare_exchange_strong(expected, PlaceState::claimed, std::memory_order_acquire)) continue;
    std::memcpy(places[i].name.data(), name.c_str(), name.size() + 1);
    places[i].state.store(PlaceState::used, std::memory_order_release);  // pairs with the acquire in cut()
    place_ = static_cast<int>(i);
    return;
  }
}

RemovedWhenCut::~RemovedWhenCut() {
  if (place_ < 0) return;
  PlaceState expected = PlaceState::used;  // otherwise cut() has it, and this process is about to end
  places[static_cast<std::size_t>(place_)].state.compare_exchange_strong(expected, PlaceState::free,
                                                                         std::memory_order_release);
}

}  // namespace weir
