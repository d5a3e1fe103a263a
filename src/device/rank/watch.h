// Notices when another rank of this host dies, so that no rank waits for it for ever. Knows processes, not MPI; the
// caller decides what to do.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <thread>
#include <vector>

namespace weir {

struct RankProcess {
  int rank = 0;
  pid_t pid = 0;
};

class RankWatch {
 public:
  // Reacts when a process dies (before Linux 5.3: polls twice a second). `on_death` is called once, on the watch's own
  // thread, with the first dead rank found and the lowest living rank. Processes that are not visible (another pid
  // namespace) are not watched.
  RankWatch(std::span<const RankProcess> processes,
            std::function<void(const RankProcess& dead, int lowest_alive)> on_death);
  ~RankWatch();  // stops and joins
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

 private:
  struct Watched {
    RankProcess process;
    unsigned long long started = 0;  // from /proc; a different value means that the pid was reused
  };
  void watch(const std::stop_token& stop);

  std::vector<Watched> watched_;
  std::vector<int> wakers_;  // file descriptors
  std::function<void(const RankProcess&, int)> on_death_;
  std::jthread thread_;  // last: it uses the members above
};

}  // namespace weir
