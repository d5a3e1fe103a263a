// The slots of a pool: which are free, in which thread's cache or on which stack, and the memory taken from the source.
// Knows no owner of a slot. Allocating and freeing touch only the calling thread's cache, which exchanges whole
// magazines with the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "channel/magazine.h"
#include "channel/memory_source.h"
#include "channel/owner_lock.h"

namespace weir {

enum class Exhaustion : std::uint8_t {
  refuse,  // at the limit
  grow,    // beyond it, while the source has memory
};

struct PoolOptions {
  std::size_t limit_bytes = std::size_t{256} << 20;   // maximum from the source; see when_exhausted
  std::size_t largest_bytes = std::size_t{64} << 20;  // of one slot
  std::size_t chunk_bytes = std::size_t{1} << 20;     // approximate size of a request to the source
  // The maximum that a thread caches of one size, in total; or two times 29 slots, if that is less.
  std::size_t thread_cache_bytes = std::size_t{16} << 20;
  Exhaustion when_exhausted = Exhaustion::refuse;
};

enum class Refusal : std::uint8_t {
  none,
  too_large,  // no slot is that large
  exhausted,  // the limit is reached and every slot of that size is in use
  source,     // the source has none left
};

// Sizes are those of slots, not the requested ones. Exact while nobody allocates or frees.
struct PoolStatistics {
  std::uint64_t allocations = 0, frees = 0;
  std::uint64_t recycled = 0;                  // allocations served without the source
  std::uint64_t source_calls = 0;              // calls that returned memory
  std::uint64_t refused = 0;                   // allocations
  std::uint64_t drained = 0;                   // times that all threads' caches were emptied for lack of slots
  std::size_t allocated_bytes = 0;             // now
  std::size_t peak_bytes = 0;                  // maximum in use or in thread caches
  std::size_t source_bytes = 0;                // held now
  std::size_t peak_source_bytes = 0;           // maximum held
  std::vector<std::size_t> cached_bytes = {};  // per running thread that has used the pool
};

// A thread's own slots. Accessed only by the owner while it is inside the lock.
struct alignas(kApart) SlotCache {
  // For one size: two magazines, so that many slots can be taken or returned before one is exchanged.
  struct Bin {
    std::atomic<std::uintptr_t> top{MagazineTop::kNone};  // atomic only for threads that read the counts
    std::uintptr_t end = MagazineTop::kNone;              // the limit for `top`
    Magazine* spare = nullptr;                            // nearly always full or empty
    std::atomic<std::uint64_t> spare_count{0};

    MagazineTop load() const noexcept { return {top.load(std::memory_order_relaxed)}; }
    void store(MagazineTop value) noexcept { top.store(value.word, std::memory_order_relaxed); }
  };
  std::array<Bin, slot_bins::kCount> bins;
  OwnerLock<> lock;
  std::atomic<std::uint64_t> allocations{0};  // relaxed: only the owner writes it; others read it for statistics
};

class SlotStore {
 public:
  SlotStore(const PoolOptions& options, std::shared_ptr<MemorySource> source);
  ~SlotStore();
  SlotStore(const SlotStore&) = delete;
  SlotStore& operator=(const SlotStore&) = delete;

  // Null: refused; take_slowly() sets the reason.
  [[gnu::always_inline]] SlotRecord* take(std::uint32_t bin, Refusal& why) noexcept {
    // At a fixed address, independent of the store: the processor speculates that it is the right one.
    const Own own = last_;
    if (own.serial == serial_ && own.cache->lock.enter_lightly()) [[likely]] {
      SlotCache::Bin& mine = own.cache->bins[bin];
      const MagazineTop top = mine.load();
      if (!top.is_empty()) [[likely]] {
        SlotRecord* const record = pop(*own.cache, mine, top);
        own.cache->lock.leave_lightly();
        return record;
      }
      own.cache->lock.leave_lightly();
    }
    return take_slowly(bin, why);
  }
  // `bin` is the record's, which the caller knows without reading the record.
  [[gnu::always_inline]] static void give(SlotRecord& record, std::uint32_t bin) noexcept {
    const Own own = last_;
    if (own.serial == record.serial && own.cache->lock.enter_lightly()) [[likely]] {
      SlotCache::Bin& mine = own.cache->bins[bin];
      const MagazineTop top = mine.load();
      if (top.word != mine.end) [[likely]] {
        push(mine, record, top);
        own.cache->lock.leave_lightly();
        return;
      }
      own.cache->lock.leave_lightly();
    }
    record.store->give_slowly(record);
  }

  const PoolOptions& options() const noexcept { return options_; }
  const MemorySource& source() const noexcept { return *source_; }
  bool is_host_accessible() const noexcept { return is_host_accessible_; }
  PoolStatistics statistics() const;
  // The calling thread is ending: returns its slots. Called only by ThreadCaches.
  void retire(SlotCache& cache);
  // Counts the refusal.
  Refusal refuse(Refusal why) noexcept {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return why;
  }

 private:
  // The calling thread's cache for a store; serials are never reused, so an entry of a destroyed store is harmless.
  struct Own {
    std::uint64_t serial = 0;
    SlotCache* cache = nullptr;
  };
  static constinit thread_local Own last_;

  // A piece of the source's memory, cut into slots. The records stay when the memory is returned.
  struct Chunk {
    std::unique_ptr<SlotRecord[]> records;
    std::uint32_t room = 0;   // records
    std::uint32_t count = 0;  // current slots
    std::byte* memory = nullptr;
    std::size_t size_bytes = 0;
  };
  // The shelf for one size.
  struct alignas(kApart) Shelf {
    MagazineStack full;  // each with at least one slot
    alignas(kApart) MagazineStack empty;
    alignas(kApart) std::vector<Chunk> chunks;
    std::uint32_t most = 1;  // slots in a magazine
  };

  static SlotRecord* pop(SlotCache& cache, SlotCache::Bin& mine, MagazineTop top) noexcept {
    SlotRecord** const slot = top.slot() - 1;
    mine.top.store(std::bit_cast<std::uintptr_t>(slot), std::memory_order_relaxed);
    cache.allocations.store(cache.allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return *slot;
  }
  static void push(SlotCache::Bin& mine, SlotRecord& record, MagazineTop top) noexcept {
    *top.slot() = &record;
    mine.top.store(std::bit_cast<std::uintptr_t>(top.slot() + 1), std::memory_order_relaxed);
  }

  [[gnu::noinline]] SlotRecord* take_slowly(std::uint32_t bin, Refusal& why) noexcept;
  [[gnu::noinline]] void give_slowly(SlotRecord& record) noexcept;
  SlotCache* find_or_make_cache() noexcept;
  bool refill(SlotCache& cache, std::uint32_t bin) noexcept;
  bool make_room(SlotCache& cache, std::uint32_t bin) noexcept;
  static void load(SlotCache::Bin& mine, Magazine* magazine, std::uint64_t count, std::uint32_t most) noexcept;
  void count_out(std::int64_t slots, std::uint32_t bin) noexcept;
  void regain(SlotCache& cache) noexcept;

  // Everything below: with the mutex held, and outside any cache's lock.
  struct InUse {
    std::uint64_t allocations = 0, frees = 0;
    std::size_t bytes = 0;
  };
  InUse in_use() const noexcept;
  SlotRecord* search(std::uint32_t bin, Refusal& why);
  SlotRecord* pop_shared(Shelf& shelf) noexcept;
  void push_shared(Shelf& shelf, SlotRecord& record);
  struct Cached {
    std::size_t slots = 0, bytes = 0;
  };
  static Cached cached(const SlotCache& cache) noexcept;
  SlotRecord* add_chunk(std::uint32_t bin, std::size_t allowed_bytes);
  bool is_all_in_use(std::uint32_t bin) const noexcept;
  void drain();
  void drain(SlotCache& cache);
  void return_chunks(std::size_t wanted_bytes);
  void return_free(std::uint32_t bin, std::size_t& wanted_bytes);
  Magazine& empty_magazine(Shelf& shelf);

  std::uint64_t serial_;
  bool is_host_accessible_;
  PoolOptions options_;
  std::shared_ptr<MemorySource> source_;
  std::unique_ptr<Shelf[]> shelves_;  // by bin

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<SlotCache>> caches_;
  std::deque<Magazine> magazines_;  // all that were ever created
  std::uint64_t allocations_ = 0;   // by threads that have ended
  std::uint64_t source_calls_ = 0, drained_ = 0;
  std::uint64_t frees_at_failure_ = UINT64_MAX;  // the count when last no chunk could be returned
  std::size_t source_bytes_ = 0, peak_source_bytes_ = 0;
  std::atomic<std::uint64_t> refused_{0};

  // In use or in thread caches. Updated when magazines are exchanged, so that slots need not be counted one by one.
  alignas(kApart) std::atomic<std::int64_t> out_bytes_{0};
  std::atomic<std::int64_t> out_slots_{0};
  std::atomic<std::int64_t> peak_bytes_{0};
};

}  // namespace weir
