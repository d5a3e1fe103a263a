#include "submit/sched/gate.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "channel/system.h"

namespace weir::scheduler {
namespace {

constexpr auto kOrdered = std::memory_order_seq_cst;
constexpr auto kCount = std::memory_order_relaxed;  // statistics only

}  // namespace

Gate::Gate(Board& board, int seat, void (*ring)(void*), void* ring_context, const GateLimits& limits)
    : limits_(limits),
      board_(&board),
      seat_(&board.seats[seat]),
      bit_(std::uint64_t{1} << seat),
      ring_(ring),
      ring_context_(ring_context) {}

void Gate::set_wake(void (*wake)(void*), void* context) noexcept {
  wake_ = wake;
  wake_context_ = context;
}

std::uint32_t Gate::enter(std::uint32_t most, Fits fits) noexcept {
  // Pairs with settle(): "count, then check the bit" here, "clear the bit, then check the count" there. At least one of
  // the two sees the other, and sets the bit.
  pending_.fetch_add(1, kOrdered);
  if ((board_->active.load(kOrdered) & bit_) == 0) become_active();
  std::uint32_t admitted = 1;
  const Hold hold = admit(most, fits, &admitted);
  if (hold != Hold::none) [[unlikely]]
    wait_for_turn(hold, most, fits, &admitted);
  if (admitted > 1) pending_.fetch_add(admitted - 1, kOrdered);
  seat_->launches.fetch_add(admitted, kCount);
  return admitted;
}

std::uint32_t Gate::try_enter(std::uint32_t most, Fits fits) noexcept {
  pending_.fetch_add(1, kOrdered);  // as in enter()
  if ((board_->active.load(kOrdered) & bit_) == 0) become_active();
  std::uint32_t admitted = 1;
  bool is_in = admit(most, fits, &admitted) == Hold::none;
  const std::int64_t now = is_in ? 0 : now_ns();
  if (!is_in && now - board_->beat_ns.load(std::memory_order_relaxed) > kSilentNs) {
    admit_anyway();
    is_in = true;
  }
  if (is_in) {
    if (admitted > 1) pending_.fetch_add(admitted - 1, kOrdered);
    seat_->launches.fetch_add(admitted, kCount);
    return admitted;
  }
  seat_->alive_ns.store(now, std::memory_order_relaxed);
  idle_since_ns_.store(now, std::memory_order_relaxed);  // ordered by the next line: settle() reads the count first
  pending_.fetch_sub(1, kOrdered);
  wake_settler();
  return 0;
}

void Gate::leave(std::uint32_t commands) noexcept {
  const std::int64_t now = now_ns();
  idle_since_ns_.store(now, std::memory_order_relaxed);  // ordered by the next lines, as in try_enter()
  on_device_.fetch_sub(commands, kOrdered);
  pending_.fetch_sub(commands, kOrdered);
  measure_rate(commands, now);
  // Pairs with sleep(): "count down, then check for sleepers" here.
  if (own_waiting_.load(kOrdered) != 0) wake_own();
}

// Commands that ended in the last whole period decide how many may be on the device in the next one. Idle time lowers
// the rate: the first period after a pause has a small bound again.
void Gate::measure_rate(std::uint32_t ended, std::int64_t now_ns) noexcept {
  period_ended_.fetch_add(ended, kCount);
  std::int64_t begun_ns = period_ns_.load(std::memory_order_relaxed);
  const std::int64_t passed_ns = now_ns - begun_ns;
  if (passed_ns < limits_.depth_ns / 4) return;
  // Of several threads one closes the period; a command that another one counts just then goes to the next period.
  if (!period_ns_.compare_exchange_strong(begun_ns, now_ns, std::memory_order_relaxed)) return;
  const double rate = static_cast<double>(period_ended_.exchange(0, kCount)) / static_cast<double>(passed_ns);
  depth_.store(static_cast<std::uint32_t>(std::min<double>(rate * static_cast<double>(limits_.depth_ns), kNoBound)),
               std::memory_order_relaxed);
}

std::uint32_t Gate::bound() const noexcept {
  const std::uint32_t strict = seat_->in_flight.load(kOrdered);
  return strict != 0 && is_loose() ? std::max(strict, depth_.load(std::memory_order_relaxed)) : strict;
}

void Gate::become_active() noexcept {
  if (!is_in_force_.load(kOrdered)) return;
  const std::int64_t now = now_ns();
  seat_->arrived_ns.store(now, std::memory_order_relaxed);  // published by the bit, which the daemon reads first
  seat_->alive_ns.store(now, std::memory_order_relaxed);
  const bool was_active = (board_->active.fetch_or(bit_, kOrdered) & bit_) != 0;
  // Pairs with open_for_good(), which clears the bit after the flag: nobody may wait for an abandoned seat.
  if (!is_in_force_.load(kOrdered)) board_->active.fetch_and(~bit_, kOrdered);
  if (!was_active && ring_ != nullptr && board_->follows_arrivals.load(std::memory_order_relaxed) != 0)
    ring_(ring_context_);
}

std::uint32_t Gate::confines_to() const noexcept {
  const Confine when = confine();
  if (when == Confine::never || !is_shared()) return 0;
  const bool is_beside = (board_->active.load(kOrdered) & seat_->yields_to.load(kOrdered)) != 0;
  return when == Confine::always || is_beside ? seat_->part_percent.load(std::memory_order_relaxed) : 0;
}

Gate::Hold Gate::holds(std::uint32_t on_device, Fits fits) const noexcept {
  if (!is_in_force_.load(kOrdered) || board_->is_closed.load(kOrdered) != 0) return Hold::none;
  const std::uint32_t most = bound();
  if (most == 0) return Hold::none;
  const bool goes_beside = fits == Fits::part && confine() != Confine::never;
  if (!goes_beside && (board_->active.load(kOrdered) & seat_->yields_to.load(kOrdered)) != 0) return Hold::others;
  return on_device >= most ? Hold::own : Hold::none;
}

Gate::Hold Gate::admit(std::uint32_t most, Fits fits, std::uint32_t* admitted) noexcept {
  std::uint32_t count = on_device_.load(kOrdered);
  for (;;) {
    const Hold hold = holds(count, fits);
    if (hold != Hold::none) return hold;
    // The bound may have changed since holds() looked; one command may go at any rate.
    const std::uint32_t room = std::max(bound(), count + 1) - count;
    const std::uint32_t wanted = std::clamp<std::uint32_t>(most, 1, room);
    // If two threads both saw room for one, the second finds the count changed and checks again. Only who passes gets
    // a number: whoever is held now may be let through alone later, by admit_anyway().
    if (!on_device_.compare_exchange_weak(count, count + wanted, kOrdered)) continue;
    *admitted = wanted;
    break;
  }
  if (count == 0) wake_settler();
  return Hold::none;
}

void Gate::admit_anyway() noexcept {
  if (on_device_.fetch_add(1, kOrdered) == 0) wake_settler();
}

void Gate::wait_for_turn(Hold hold, std::uint32_t most, Fits fits, std::uint32_t* admitted) noexcept {
  const std::int64_t begun = now_ns();
  std::int64_t now = begun;
  std::int64_t own_since = begun;  // while others hold it, its own commands may be off the device
  bool is_held = false;
  while (hold != Hold::none) {
    const std::int64_t beat = board_->beat_ns.load(std::memory_order_relaxed);
    const std::int64_t silent_ns = beat == kNever ? kNever : beat + kSilentNs;
    // A command on the device may itself wait for the one that is held here: for a flag that the program sets after its
    // next launch, or a kernel on another stream. The bound must not turn that into a deadlock.
    const bool is_stuck = hold == Hold::own &&
                          now - std::max(own_since, idle_since_ns_.load(std::memory_order_relaxed)) > limits_.stuck_ns;
    if (now > silent_ns || is_stuck) {
      admit_anyway();
      break;
    }
    seat_->alive_ns.store(now, std::memory_order_relaxed);
    if (now - begun < limits_.spin_ns) {
      System::pause();
    } else {
      sleep(hold, fits, std::min(limits_.sleep_ns, silent_ns - now));
    }
    const std::int64_t before = now;
    now = now_ns();
    if (hold == Hold::others) own_since = now;
    if (hold == Hold::others && !is_held) seat_->held.fetch_add(1, kCount);
    is_held |= hold == Hold::others;
    (hold == Hold::others ? seat_->held_ns : seat_->paced_ns)
        .fetch_add(static_cast<std::uint64_t>(now - before), kCount);
    hold = admit(most, fits, admitted);
  }
}

// A command may be held by both; it waits for the others first, and then checks again.
void Gate::sleep(Hold hold, Fits fits, std::int64_t max_ns) noexcept {
  std::atomic<std::uint32_t>& turn = hold == Hold::own ? own_turn_ : board_->turn;
  std::atomic<std::uint32_t>& waiting = hold == Hold::own ? own_waiting_ : board_->waiting;
  // Pairs with wake_waiting() and leave(). The key is read before the flag is set: a waker clears the flag and then
  // increments `turn`, so either the key is stale, or the flag stays set while this thread sleeps. In the other order,
  // a waker could clear the flag and increment `turn` in between, and this thread would sleep unnoticed.
  const std::uint32_t key = turn.load(kOrdered);
  waiting.store(1, kOrdered);
  if (holds(on_device_.load(kOrdered), fits) == hold) sleep_on(turn, key, max_ns);
}

void Gate::wake_own() noexcept {
  own_waiting_.store(0, kOrdered);
  own_turn_.fetch_add(1, kOrdered);  // pairs with the key in sleep()
  wake_all(own_turn_);
}

std::int64_t Gate::settle(std::int64_t now_ns) noexcept {
  seat_->alive_ns.store(now_ns, std::memory_order_relaxed);
  if (pending_.load(kOrdered) != 0) return kNever;
  if ((board_->active.load(std::memory_order_relaxed) & bit_) == 0) return kNever;  // this client's own bit
  const std::int64_t due = idle_since_ns_.load(std::memory_order_relaxed) + linger_ns_.load(std::memory_order_relaxed);
  if (now_ns < due) return due;
  end_request();
  board_->active.fetch_and(~bit_, kOrdered);
  // Pairs with enter(), see there.
  if (pending_.load(kOrdered) != 0) become_active();
  wake_waiting(*board_);
  return kNever;
}

// Before the bit is cleared: the next request writes when it arrived.
void Gate::end_request() noexcept {
  const std::int64_t took_ns =
      idle_since_ns_.load(std::memory_order_relaxed) - seat_->arrived_ns.load(std::memory_order_relaxed);
  requests_ns_[requests_++ % requests_ns_.size()] = std::max<std::int64_t>(took_ns, 0);
  seat_->requests_ns.fetch_add(static_cast<std::uint64_t>(std::max<std::int64_t>(took_ns, 0)), kCount);
  seat_->requests.store(requests_, kCount);
  if (requests_ < kRequestWindow || requests_ % (kRequestWindow / 4) != 0) return;
  std::array<std::int64_t, kRequestWindow> sorted = requests_ns_;
  const auto p99 = sorted.begin() + kRequestWindow * 99 / 100;
  std::nth_element(sorted.begin(), p99, sorted.end());
  seat_->request_p99_ns.store(*p99, kCount);
}

void Gate::open_for_good() noexcept {
  is_in_force_.store(false, kOrdered);  // pairs with become_active(), and with holds() after sleep() sets its flag
  board_->active.fetch_and(~bit_, kOrdered);
  wake_all_clients(*board_);
  wake_own();
}

}  // namespace weir::scheduler
