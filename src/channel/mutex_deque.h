// The traditional pattern: a deque with a mutex, and condition variables for waiting. A fair competitor: bounded, with
// batches under one lock and no wake-ups without waiters. Any number of producers and consumers.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>

#include "channel/blocking.h"
#include "channel/cells.h"

namespace weir {

// The condition variables decide how threads wait (they park); with `kWait` spin, threads only poll.
template <class T, Wait kWait = Wait::park>
class MutexDeque {
 public:
  using Item = T;

  explicit MutexDeque(std::size_t capacity) : capacity_(ring_capacity(capacity)) {}

  Outcome try_push(const T& item) noexcept {
    const std::unique_lock lock(mutex_);
    return push_locked(item);
  }
  Moved try_push_batch(std::span<const T> items) noexcept {
    const std::unique_lock lock(mutex_);
    return push_batch_locked(items);
  }
  Moved push_batch(std::span<const T> items, Limit limit = Limit::forever()) noexcept {
    std::unique_lock lock(mutex_);
    Moved all;
    all.outcome = wait(lock, item_popped_, room_waiters_, limit, Outcome::full, [&] {
      const Moved moved = push_batch_locked(items.subspan(all.count));
      all.count += moved.count;
      return moved.outcome;
    });
    return all;
  }
  Outcome push(const T& item, Limit limit = Limit::forever()) noexcept {
    std::unique_lock lock(mutex_);
    return wait(lock, item_popped_, room_waiters_, limit, Outcome::full, [&] { return push_locked(item); });
  }

  Outcome try_pop(T& item) noexcept {
    const std::unique_lock lock(mutex_);
    return pop_locked(item);
  }
  Moved try_pop_batch(std::span<T> items) noexcept {
    const std::unique_lock lock(mutex_);
    return pop_batch_locked(items);
  }
  Moved pop_batch(std::span<T> items, Limit limit = Limit::forever()) noexcept {
    std::unique_lock lock(mutex_);
    Moved moved;
    moved.outcome = wait(lock, item_pushed_, item_waiters_, limit, Outcome::empty, [&] {
      moved = pop_batch_locked(items);
      return moved.outcome;
    });
    return moved;
  }
  Outcome pop(T& item, Limit limit = Limit::forever()) noexcept {
    std::unique_lock lock(mutex_);
    return wait(lock, item_pushed_, item_waiters_, limit, Outcome::empty, [&] { return pop_locked(item); });
  }

  void close() noexcept {
    const std::unique_lock lock(mutex_);
    is_closed_ = true;
    item_pushed_.notify_all();
    item_popped_.notify_all();
  }
  bool is_closed() const noexcept {
    const std::unique_lock lock(mutex_);
    return is_closed_;
  }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  Outcome push_locked(const T& item) {
    if (is_closed_) return Outcome::closed;
    if (items_.size() == capacity_) return Outcome::full;
    items_.push_back(item);
    if (item_waiters_ != 0) item_pushed_.notify_one();
    return Outcome::done;
  }
  Outcome pop_locked(T& item) {
    if (items_.empty()) return is_closed_ ? Outcome::closed : Outcome::empty;
    item = items_.front();
    items_.pop_front();
    if (room_waiters_ != 0) item_popped_.notify_one();
    return Outcome::done;
  }
  Moved push_batch_locked(std::span<const T> items) {
    if (is_closed_) return {0, Outcome::closed};
    const std::size_t count = std::min(items.size(), capacity_ - items_.size());
    items_.insert(items_.end(), items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count));
    if (count != 0 && item_waiters_ != 0) item_pushed_.notify_all();
    return {count, count == items.size() ? Outcome::done : Outcome::full};
  }
  Moved pop_batch_locked(std::span<T> items) {
    if (items.empty()) return {};
    if (items_.empty()) return {0, is_closed_ ? Outcome::closed : Outcome::empty};
    const std::size_t count = std::min(items.size(), items_.size());
    const auto end = items_.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(items_.begin(), end, items.begin());
    items_.erase(items_.begin(), end);
    if (room_waiters_ != 0) item_popped_.notify_all();
    return {count, Outcome::done};
  }
  template <class Attempt>
  Outcome wait(std::unique_lock<std::mutex>& lock, std::condition_variable& condition, int& waiters, Limit limit,
               Outcome again, Attempt attempt) {
    Outcome outcome = attempt();
    if (limit.is_none()) return outcome;
    for (int spins = 0; outcome == again; spins = System::next_spin(spins)) {
      if constexpr (kWait == Wait::spin) {
        lock.unlock();
        System::relax(spins);
        lock.lock();
        if (outcome = attempt(); outcome == again && limit.is_past()) return Outcome::late;
      } else {
        ++waiters;
        const auto deadline = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(limit.deadline_ns));
        const bool is_late = limit.deadline_ns == INT64_MAX
                                 ? (condition.wait(lock), false)
                                 : condition.wait_until(lock, deadline) == std::cv_status::timeout;
        --waiters;
        if (outcome = attempt(); outcome == again && is_late) return Outcome::late;
      }
    }
    return outcome;
  }

  mutable std::mutex mutex_;
  std::condition_variable item_pushed_, item_popped_;
  int item_waiters_ = 0, room_waiters_ = 0;
  std::deque<T> items_;
  std::size_t capacity_;
  bool is_closed_ = false;
};

}  // namespace weir
