#include "lab/preempt/intruder.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

namespace weir::preempt {
namespace {

// Sleeps until shortly before, then polls the clock, unless the device itself runs on CPU cores.
void wait_until(std::int64_t due_ns, bool is_gpu) noexcept {
  const std::int64_t asleep_ns = is_gpu ? due_ns - 100'000 : due_ns;
  if (now_ns() < asleep_ns) {
    const timespec until{asleep_ns / 1'000'000'000, asleep_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  while (now_ns() < due_ns) {
  }
}

}  // namespace

Intruder::Intruder(Arena& arena, std::vector<std::int64_t> due_ns, bool raises_flag)
    : arena_(arena), due_ns_(std::move(due_ns)), submitted_ns_(due_ns_.size(), kNoTime), raises_flag_(raises_flag) {
  has_sent_all_ = due_ns_.empty();
}

void Intruder::send_one(std::int64_t now_ns) noexcept {
  const int index = arrived_.load(std::memory_order_relaxed);  // owned by this thread
  // Counts the arrival first, then raises the flag: a thread that sees the flag and still launches knows of the
  // arrival.
  arrived_.store(index + 1, std::memory_order_release);  // pairs with arrived()
  if (raises_flag_) arena_.raise_flag(index + 1);
  submitted_ns_[static_cast<std::size_t>(index)] = now_ns;
  arena_.request(index);
  if (index + 1 == static_cast<int>(due_ns_.size())) has_sent_all_.store(true, std::memory_order_release);  // is_over()
}

std::int64_t Intruder::send(std::int64_t now_ns) noexcept {
  for (auto next = static_cast<std::size_t>(arrived_.load(std::memory_order_relaxed)); next < due_ns_.size(); ++next) {
    if (is_stopped_.load(std::memory_order_relaxed)) break;
    if (begin_ns_ + due_ns_[next] > now_ns) return begin_ns_ + due_ns_[next];
    send_one(now_ns);
    now_ns = std::max(now_ns, arena_.now_ns());
  }
  has_sent_all_.store(true, std::memory_order_release);  // pairs with is_over()
  return kNoTime;
}

void Intruder::run() noexcept {
  // Only for this thread: by default timers are up to 50 us late on purpose.
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  for (const std::int64_t due_ns : due_ns_) {
    wait_until(begin_ns_ + due_ns, arena_.is_gpu());
    if (is_stopped_.load(std::memory_order_relaxed)) break;
    send_one(now_ns());
  }
  has_sent_all_.store(true, std::memory_order_release);  // pairs with is_over()
}

int Intruder::ended() noexcept {
  const int arrived = this->arrived();
  while (ended_ < arrived && arena_.moment(ended_).ended_ns != 0) ++ended_;
  return ended_;
}

std::vector<Request> Intruder::requests(const ClockLine& clock) const {
  std::vector<Request> all(static_cast<std::size_t>(arrived()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Moment moment = arena_.moment(static_cast<int>(i));
    all[i].due_ns = begin_ns_ + due_ns_[i];
    all[i].submitted_ns = submitted_ns_[i];
    if (moment.ended_ns == 0) continue;  // it never ran: 0 is not a time of the clock
    // No kernel starts before it is submitted: if the clocks say so, they are off by that much.
    all[i].started_ns = std::max(clock.host_ns(moment.started_ns), submitted_ns_[i]);
    all[i].ended_ns = std::max(clock.host_ns(moment.ended_ns), all[i].started_ns);
  }
  return all;
}

}  // namespace weir::preempt
