// A thread for what may never return: calls into a driver whose device hangs. Whoever waits does so for a limited
// time, and may leave the thread behind. Knows no device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace weir::fleet {

class Worker {
 public:
  Worker();
  // Ends the thread; one that is stuck is left behind, with what its work refers to.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // One at a time. What throws ends the program: the work catches.
  void start(std::function<void()> work);
  // False where the work has not ended at that time (base/clock.h), and from then on.
  bool wait_until(std::int64_t deadline_ns);
  bool is_stuck() const { return is_stuck_; }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::function<void()> work;
    bool is_busy = false, is_ending = false;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
  bool is_stuck_ = false;
};

}  // namespace weir::fleet
