#include "channel/thread_slot.h"

#include <atomic>
#include <mutex>

namespace weir {
namespace {

std::mutex mutex;
bool is_taken[kThreadSlots];
std::atomic<int> used{0};

// Returns the number when its thread ends.
struct Lease {
  Lease() noexcept {
    const std::lock_guard lock(mutex);
    int slot = 0;
    while (slot < kThreadSlots && is_taken[slot]) ++slot;
    if (slot < kThreadSlots) is_taken[slot] = true;
    detail::own_slot = slot;
    // Relaxed: a concurrent reader of a table may miss a thread that has just appeared.
    if (slot >= used.load(std::memory_order_relaxed)) used.store(slot + 1, std::memory_order_relaxed);
  }
  ~Lease() {
    const std::lock_guard lock(mutex);
    if (detail::own_slot < kThreadSlots) is_taken[detail::own_slot] = false;
    detail::own_slot = kThreadSlots;  // later counts by this thread's other destructors are shared
  }
};

}  // namespace

int detail::take_thread_slot() noexcept {
  static thread_local const Lease lease;
  return own_slot;
}

int thread_slots_used() noexcept { return used.load(std::memory_order_relaxed); }

}  // namespace weir
