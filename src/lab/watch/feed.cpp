#include "lab/watch/feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace weir::watch {

Feed::Feed(Body body, Pace pace, Wake wake)
    : wake_(std::move(wake)), pace_(pace), published_ns_(now_ns()), thread_([this, run = std::move(body)] {
        std::exception_ptr failure;
        try {
          run(*this);
        } catch (...) {
          failure = std::current_exception();
        }
        {
          const std::lock_guard lock(mutex_);
          failure_ = failure;
          has_ended_ = true;
        }
        changed_.notify_all();
        if (wake_) wake_();
      }) {}

Feed::~Feed() {
  stop();
  thread_.join();
}

bool Feed::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return is_stopped_;
}

bool Feed::is_due() const {
  const std::lock_guard lock(mutex_);
  return now_ns() >= due_ns();
}

bool Feed::await_due() {
  std::unique_lock lock(mutex_);
  // The interval may change during the wait, so the due time is computed again after every wake-up.
  while (!is_stopped_) {
    const std::int64_t left = due_ns() - now_ns();
    if (left <= 0) return true;
    changed_.wait_for(lock, std::chrono::nanoseconds(left));
  }
  return false;
}

void Feed::publish(Sample sample) {
  {
    const std::lock_guard lock(mutex_);
    sample.number = ++number_;
    latest_ = std::make_shared<const Sample>(std::move(sample));
    // Samples are due on a grid of intervals, so that delays do not add up; a source that is slower starts a new grid.
    const std::int64_t now = now_ns(), planned = published_ns_ + pace_.interval_ns;
    published_ns_ = number_ == 1 || now - planned > pace_.interval_ns ? now : planned;
  }
  changed_.notify_all();
  if (wake_) wake_();
}

void Feed::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
}

void Feed::set_interval(std::int64_t ns) {
  {
    const std::lock_guard lock(mutex_);
    pace_.interval_ns = ns;
    // A due time computed from the old interval does not delay the new one.
    published_ns_ = std::min(published_ns_, now_ns());
  }
  changed_.notify_all();
}

std::shared_ptr<const Sample> Feed::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

std::shared_ptr<const Sample> Feed::await(std::uint64_t number, std::int64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return number_ >= number || has_ended_; });
  return latest_;
}

bool Feed::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

void Feed::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

}  // namespace weir::watch
