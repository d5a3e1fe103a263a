#include "channel/owner_lock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace weir {
namespace {

// A machine whose kernel cannot make other threads pass a barrier.
struct FencedSystem : System {
  static void light_fence() noexcept { full_fence(); }
  static void heavy_fence() noexcept { full_fence(); }
  static bool is_light_fence_free() noexcept { return false; }
};

// Two owners count up in their own plain words; a third thread takes both locks away again and again and counts too.
// Whoever is inside alone never sees the other's half done.
template <class Sync>
void take_and_count() {
  constexpr int kTakes = 300;
  Sync::prepare();
  struct Owned {
    OwnerLock<Sync> lock;
    std::uint64_t first = 0, second = 0;
    std::uint64_t light = 0, heavy = 0;
  };
  std::array<Owned, 2> all;
  std::mutex mutex;
  int torn = 0;
  std::atomic<bool> is_over{false};
  {
    std::vector<std::jthread> threads;
    for (Owned& mine : all) {
      threads.emplace_back([&] {
        while (!is_over.load(std::memory_order_relaxed)) {
          if (mine.lock.enter_lightly()) {
            ++mine.first;
            ++mine.light;
            ++mine.second;
            mine.lock.leave_lightly();
          } else if (mine.lock.enter()) {
            ++mine.first;
            ++mine.heavy;
            ++mine.second;
            mine.lock.leave();
          } else {
            const std::lock_guard lock(mutex);
            mine.lock.regain();
          }
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < kTakes; ++i) {
        {
          const std::lock_guard lock(mutex);
          OwnerLock<Sync>::take([&](const auto& visit) {
            for (Owned& one : all) visit(one.lock);
          });
          for (Owned& one : all) {
            torn += one.first == one.second ? 0 : 1;
            ++one.first;
            ++one.second;
          }
        }
        std::this_thread::yield();
      }
      is_over.store(true, std::memory_order_relaxed);
    });
  }
  EXPECT_EQ(torn, 0);
  for (const Owned& one : all) {
    EXPECT_EQ(one.first, one.light + one.heavy + kTakes);
    EXPECT_EQ(one.second, one.first);
    EXPECT_TRUE(one.light == 0 || Sync::is_light_fence_free());
  }
}

TEST(OwnerLock, owner_and_takers_exclude_each_other) {
  System::prepare();
  if (!System::is_light_fence_free()) GTEST_SKIP() << "this kernel has no membarrier";
  take_and_count<System>();
}

TEST(OwnerLock, works_without_help_of_the_kernel) { take_and_count<FencedSystem>(); }

}  // namespace
}  // namespace weir
