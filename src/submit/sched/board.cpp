#include "submit/sched/board.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace weir::scheduler {

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t max_ns) noexcept {
  if (max_ns <= 0) return;
  timespec most{};
  most.tv_sec = static_cast<std::time_t>(max_ns / 1'000'000'000);
  most.tv_nsec = static_cast<long>(max_ns % 1'000'000'000);
  // Not FUTEX_PRIVATE_FLAG: several processes share the word.
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &most, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wake_all_clients(Board& board) noexcept {
  board.waiting.store(0, std::memory_order_seq_cst);
  board.turn.fetch_add(1, std::memory_order_seq_cst);  // pairs with the load before sleep_on() in Gate::sleep()
  wake_all(board.turn);
}

void wake_waiting(Board& board) noexcept {
  // "Change, then check for sleepers" here; "announce the sleeper, then check again" in Gate::sleep(): both are
  // sequentially consistent, so one of the two sees the other.
  if (board.waiting.load(std::memory_order_seq_cst) != 0) wake_all_clients(board);
}

}  // namespace weir::scheduler
