// Sends requests when they are due, whether or not earlier ones have ended: they queue. Counts from the moment they
// were due. Works in its own thread, or step by step if time is virtual.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "lab/preempt/arena.h"

namespace weir::preempt {

class Intruder {
 public:
  // `raises_flag`: raises the victim's flag with every request.
  Intruder(Arena& arena, std::vector<std::int64_t> due_ns, bool raises_flag);

  // The time from which requests are due. Call before the first one.
  void begin(std::int64_t now_ns) { begin_ns_ = now_ns; }
  // Sends what is due by now. Returns when the next one is due, or kNoTime if there is none.
  std::int64_t send(std::int64_t now_ns) noexcept;
  // Sends all requests; the main function of a thread.
  void run() noexcept;
  // Sends no more requests; those already sent count.
  void stop() noexcept { is_stopped_.store(true, std::memory_order_relaxed); }

  // Any thread. The number of requests that were sent or are being sent, which is also the flag value of the last one.
  int arrived() const noexcept { return arrived_.load(std::memory_order_acquire); }
  // One thread: how many of them have ended, in order.
  int ended() noexcept;
  bool is_over() noexcept { return has_sent_all_.load(std::memory_order_acquire) && ended() == arrived(); }

  // Call when everything has ended.
  std::vector<Request> requests(const ClockLine& clock) const;

 private:
  void send_one(std::int64_t due_ns) noexcept;

  Arena& arena_;
  std::vector<std::int64_t> due_ns_;  // relative to begin_ns_
  std::vector<std::int64_t> submitted_ns_;
  bool raises_flag_;
  std::int64_t begin_ns_ = 0;
  std::atomic<int> arrived_{0};
  std::atomic<bool> is_stopped_{false}, has_sent_all_{false};
  int ended_ = 0;
};

}  // namespace weir::preempt
