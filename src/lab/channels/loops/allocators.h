// Sources of memory for payloads with one interface: Weir's pool, malloc, and the standard library's pools.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory_resource>
#include <string_view>

#include "channel/memory_pool.h"

namespace weir::channel_bench {

// A contestant takes and gives memory of one size. `Held` is what its user keeps; it can be passed to another thread if
// kIsShared. None of them waits, and all are created before anything is measured.
struct PoolAllocator {
  static constexpr std::string_view kName = "pool";
  static constexpr bool kIsOurs = true, kIsShared = true;
  using Held = Slot;

  explicit PoolAllocator(std::size_t size_bytes, const PoolOptions& options = {.limit_bytes = std::size_t{1} << 30})
      : pool(options), size(size_bytes) {}
  [[gnu::always_inline]] Held take() { return pool.allocate(size); }
  [[gnu::always_inline]] void give(Held& held) noexcept { held.reset(); }
  static std::byte* data(const Held& held) noexcept { return held.data(); }

  MemoryPool pool;
  std::size_t size;
};

struct MallocAllocator {
  static constexpr std::string_view kName = "malloc";
  static constexpr bool kIsOurs = false, kIsShared = true;
  using Held = std::byte*;

  explicit MallocAllocator(std::size_t size_bytes) : size(size_bytes) {}
  Held take() noexcept { return static_cast<std::byte*>(std::malloc(size)); }
  void give(Held held) noexcept { std::free(held); }
  static std::byte* data(Held held) noexcept { return held; }

  std::size_t size;
};

template <class Resource>
struct PmrAllocator {
  static constexpr bool kIsOurs = false;
  using Held = std::byte*;

  explicit PmrAllocator(std::size_t size_bytes)
      // By default it passes anything beyond 4 MiB (less on other systems) to the heap each time.
      : resource({.max_blocks_per_chunk = 0, .largest_required_pool_block = std::size_t{4} << 20}), size(size_bytes) {}
  Held take() { return static_cast<std::byte*>(resource.allocate(size)); }
  void give(Held held) noexcept { resource.deallocate(held, size); }
  static std::byte* data(Held held) noexcept { return held; }

  Resource resource;
  std::size_t size;
};
struct UnsynchronizedAllocator : PmrAllocator<std::pmr::unsynchronized_pool_resource> {
  static constexpr std::string_view kName = "pmr_unsynchronized";
  static constexpr bool kIsShared = false;
  using PmrAllocator::PmrAllocator;
};
struct SynchronizedAllocator : PmrAllocator<std::pmr::synchronized_pool_resource> {
  static constexpr std::string_view kName = "pmr_synchronized";
  static constexpr bool kIsShared = true;
  using PmrAllocator::PmrAllocator;
};

template <class F>
void for_each_allocator(F&& f) {
  f.template operator()<PoolAllocator>();
  f.template operator()<MallocAllocator>();
  f.template operator()<UnsynchronizedAllocator>();
  f.template operator()<SynchronizedAllocator>();
}

// Keeps the compiler from removing memory that is never read.
inline void keep(const void* address) noexcept { asm volatile("" : : "r"(address) : "memory"); }

}  // namespace weir::channel_bench
