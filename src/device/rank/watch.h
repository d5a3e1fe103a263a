// Notices when another rank of this host dies, so that nobody waits for it for ever. Knows processes, not MPI; what to
// do then is the caller's.
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
  // Wakes up when one dies (before Linux 5.3: looks twice a second). `on_death` is called once, by the watch's own
  // thread, with the first dead rank found and the lowest rank that lives. Processes that cannot be seen from here
  // (another pid namespace) are not watched.
  RankWatch(std::span<const RankProcess> processes,
            std::function<void(const RankProcess& dead, int lowest_alive)> on_death);
  ~RankWatch();  // stops and joins
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

 private:
  struct Watched {
    RankProcess process;
    unsigned long long started = 0;  // as /proc says: the same number for another process is another process
  };
  void watch(const std::stop_token& stop);

  std::vector<Watched> watched_;
  std::vector<int> wakers_;  // file descriptors
  std::function<void(const RankProcess&, int)> on_death_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace weir
