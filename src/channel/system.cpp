#include "channel/system.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace weir {
namespace {

long membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

void System::prepare() noexcept {
  // Registration is per process and idempotent; the first may take milliseconds if threads are already running.
  static const bool is_registered = [] {
    const long commands = membarrier(MEMBARRIER_CMD_QUERY);
    return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
           membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  }();
  if (is_registered) has_membarrier_.store(true, std::memory_order_relaxed);
}

void System::heavy_fence() noexcept {
  full_fence();
  if (has_membarrier_.load(std::memory_order_relaxed)) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool System::wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns) noexcept {
  timespec until{};
  until.tv_sec = deadline_ns / 1'000'000'000;
  until.tv_nsec = deadline_ns % 1'000'000'000;
  // Absolute, on the monotonic clock: repeated calls cannot extend a deadline.
  const long result = syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_BITSET_PRIVATE, value,
                              deadline_ns == INT64_MAX ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

void System::wake(std::atomic<std::uint32_t>& word, int threads) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

}  // namespace weir
