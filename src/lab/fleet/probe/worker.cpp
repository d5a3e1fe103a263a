#include "lab/fleet/probe/worker.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace weir::fleet {

Worker::Worker() {
  thread_ = std::thread([shared = shared_] {
    for (std::unique_lock lock(shared->mutex);;) {
      shared->changed.wait(lock, [&] { return shared->is_busy || shared->is_ending; });
      if (!shared->is_busy) return;
      const std::function<void()> work = std::move(shared->work);
      lock.unlock();
      work();
      lock.lock();
      shared->is_busy = false;
      shared->changed.notify_all();
    }
  });
}

Worker::~Worker() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_ending = true;
  }
  shared_->changed.notify_all();
  if (is_stuck_)
    thread_.detach();
  else
    thread_.join();
}

void Worker::start(std::function<void()> work) {
  const std::lock_guard lock(shared_->mutex);
  shared_->work = std::move(work);
  shared_->is_busy = true;
  shared_->changed.notify_all();
}

bool Worker::wait_until(std::int64_t deadline_ns) {
  if (is_stuck_) return false;
  std::unique_lock lock(shared_->mutex);
  const std::chrono::nanoseconds left(std::max<std::int64_t>(0, deadline_ns - now_ns()));
  is_stuck_ = !shared_->changed.wait_for(lock, left, [&] { return !shared_->is_busy; });
  return !is_stuck_;
}

}  // namespace weir::fleet
