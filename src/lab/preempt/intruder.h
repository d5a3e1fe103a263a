// Sends requests when they are due, whatever became of the ones before: they queue. Counts from the moment they were
// due. Works in a thread of its own, or a step at a time where time is virtual.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "lab/preempt/arena.h"

namespace weir::preempt {

class Intruder {
 public:
  // `tells`: raises the victim's flag with every request.
  Intruder(Arena& arena, std::vector<std::int64_t> due_ns, bool tells);

  // From when on requests are due. Before the first one.
  void begin(std::int64_t now_ns) { begin_ns_ = now_ns; }
  // Sends what is due by now. Returns when the next one is, kNoTime where there is none.
  std::int64_t send(std::int64_t now_ns) noexcept;
  // Sends all; a thread's whole life.
  void run() noexcept;
  // No more requests: those that were sent count.
  void stop() noexcept { is_stopped_.store(true, std::memory_order_relaxed); }

  // Any thread. Requests that were due and sent, or are being sent: their number is the flag of the last one.
  int arrived() const noexcept { return arrived_.load(std::memory_order_acquire); }
  // One thread: how many of them have ended, in order.
  int ended() noexcept;
  bool is_over() noexcept { return has_sent_all_.load(std::memory_order_acquire) && ended() == arrived(); }

  // When all is over.
  std::vector<Request> requests(const ClockLine& clock) const;

 private:
  void send_one(std::int64_t due_ns) noexcept;

  Arena& arena_;
  std::vector<std::int64_t> due_ns_;  // from begin_ns_
  std::vector<std::int64_t> submitted_ns_;
  bool tells_;
  std::int64_t begin_ns_ = 0;
  std::atomic<int> arrived_{0};
  std::atomic<bool> is_stopped_{false}, has_sent_all_{false};
  int ended_ = 0;
};

}  // namespace weir::preempt
