#include "device/rank/watch.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "base/process.h"

namespace weir {
namespace {

constexpr int kPeriod_ms = 500;  // polling interval of /proc without pidfds

// Becomes readable when the process dies; -1 before Linux 5.3. Without it a launcher that kills the whole job at once
// may be faster, and then it is unknown which rank died first.
int death_of(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u));
#else
  static_cast<void>(pid);
  return -1;
#endif
}

// The process's start time; empty if it is gone or a zombie.
std::optional<unsigned long long> start_of(pid_t pid) {
  const auto facts = facts_of(pid);
  return facts && !facts->is_ended() ? std::optional(facts->started) : std::nullopt;
}

}  // namespace

RankWatch::RankWatch(std::span<const RankProcess> processes,
                     std::function<void(const RankProcess& dead, int lowest_alive)> on_death)
    : on_death_(std::move(on_death)) {
  for (const RankProcess& process : processes)
    if (const auto started = start_of(process.pid)) watched_.push_back({process, *started});
  // The first descriptor stops the watch.
  wakers_.push_back(::eventfd(0, EFD_CLOEXEC));
  for (const Watched& watched : watched_) wakers_.push_back(death_of(watched.process.pid));
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

RankWatch::~RankWatch() {
  thread_.request_stop();
  const std::uint64_t one = 1;
  if (::write(wakers_[0], &one, sizeof one) < 0) {
    // The thread then ends within kPeriod_ms.
  }
  thread_.join();
  for (const int waker : wakers_)
    if (waker >= 0) ::close(waker);
}

void RankWatch::watch(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "rank watch");  // for ps and top
  std::vector<pollfd> polled;
  for (const int waker : wakers_) polled.push_back({waker, POLLIN, 0});  // poll() ignores -1
  while (!stop.stop_requested()) {
    ::poll(polled.data(), polled.size(), kPeriod_ms);
    if (stop.stop_requested()) return;
    const Watched* dead = nullptr;
    int lowest_alive = -1;
    for (const Watched& watched : watched_) {
      const bool is_alive = start_of(watched.process.pid) == watched.started;
      if (!is_alive && dead == nullptr) dead = &watched;
      if (is_alive && (lowest_alive < 0 || watched.process.rank < lowest_alive)) lowest_alive = watched.process.rank;
    }
    if (dead == nullptr) continue;
    on_death_(dead->process, lowest_alive);
    return;
  }
}

}  // namespace weir
