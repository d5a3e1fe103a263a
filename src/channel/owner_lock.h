// A lock that belongs to one thread, which takes it with two plain stores. Others can take it away, at a cost to both.
#pragma once

#include <atomic>
#include <cstdint>

#include "channel/system.h"

namespace weir {

// Takers exclude each other, and the owner's regain(), by their own mutex. Construct after Sync::prepare().
template <class Sync = System>
class OwnerLock {
 public:
  // For the owner, in two kinds. The light one orders only the compiler, because the takers' fences make every thread
  // pass a barrier; it fails if the kernel cannot do that. A pair on a Neoverse-V1 costs 0.3 ns, and 1.7 ns with a
  // releasing store (2026-11).
  [[gnu::always_inline]] bool enter_lightly() noexcept {
    is_inside_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with the first heavy_fence() in take()
    // Relaxed: a taker leaves this set, so the owner sees the takers' changes only through their mutex.
    if (obstacle_.load(std::memory_order_relaxed) == 0) [[likely]]
      return true;
    leave();
    return false;
  }
  [[gnu::always_inline]] void leave_lightly() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with the second heavy_fence() in take()
    is_inside_.store(0, Sync::kLightRelease);
  }
  // False: the lock was taken away; regain() gets it back.
  bool enter() noexcept {
    is_inside_.store(1, std::memory_order_relaxed);
    Sync::light_fence();  // pairs with the first heavy_fence() in take()
    if (obstacle_.load(std::memory_order_relaxed) != kTaken) return true;
    leave();
    return false;
  }
  void leave() noexcept { is_inside_.store(0, std::memory_order_release); }  // pairs with the acquire in is_inside()
  // Call with the takers' mutex held.
  void regain() noexcept { obstacle_.store(free(), std::memory_order_relaxed); }

  // For takers, with their mutex held: keeps the owners of all these locks out until they call regain(), and waits for
  // owners that are inside.
  template <class Locks>
  static void take(Locks&& for_each_lock) noexcept {
    for_each_lock([](OwnerLock& lock) { lock.obstacle_.store(kTaken, std::memory_order_relaxed); });
    Sync::heavy_fence();  // pairs with the fence in enter(): the owner sees the obstacle, or is seen inside
    for_each_lock([](OwnerLock& lock) {
      for (int spins = 0; lock.is_inside(); ++spins) Sync::relax(spins);
    });
    Sync::heavy_fence();  // pairs with the fence in leave_lightly(): the owners' changes are visible
  }
  bool is_inside() const noexcept { return is_inside_.load(std::memory_order_acquire) != 0; }  // pairs with leave()

 private:
  // The owner's obstacle: 0 for none, or it needs a fence of its own, or it must stay out.
  static constexpr std::uint32_t kNeedsFence = 1, kTaken = 2;
  static std::uint32_t free() noexcept { return Sync::is_light_fence_free() ? 0 : kNeedsFence; }

  typename Sync::template Atomic<std::uint32_t> is_inside_{0};
  typename Sync::template Atomic<std::uint32_t> obstacle_{free()};
};

}  // namespace weir
