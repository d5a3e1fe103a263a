// The slots of a pool: what is free, in which thread's cache or on which stack, and what was taken from the source.
// Knows no owner of a slot. Allocating and freeing touch nothing but the cache of the calling thread, which exchanges
// whole magazines with the others.
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
  grow,    // beyond it, as long as the source gives
};

struct PoolOptions {
  std::size_t limit_bytes = std::size_t{256} << 20;   // taken from the source at most; see when_exhausted
  std::size_t largest_bytes = std::size_t{64} << 20;  // of one slot
  std::size_t chunk_bytes = std::size_t{1} << 20;     // about what is asked of the source at a time
  // That a thread may keep of one size for itself: in all, 29 slots twice where that is less.
  std::size_t thread_cache_bytes = std::size_t{16} << 20;
  Exhaustion when_exhausted = Exhaustion::refuse;
};

enum class Refusal : std::uint8_t {
  none,
  too_large,  // no slot is that large
  exhausted,  // the limit is reached and every slot of that size is in use
  source,     // the source has none left
};

// Sizes are those of slots, not what was asked for. Exact while nobody allocates or frees.
struct PoolStatistics {
  std::uint64_t allocations = 0, frees = 0;
  std::uint64_t recycled = 0;                  // allocations that did not need the source
  std::uint64_t source_calls = 0;              // that gave memory
  std::uint64_t refused = 0;                   // allocations
  std::uint64_t drained = 0;                   // times that the caches of all threads were emptied, for want of slots
  std::size_t allocated_bytes = 0;             // now
  std::size_t peak_bytes = 0;                  // with callers or in caches of threads, at once
  std::size_t source_bytes = 0;                // held now
  std::size_t peak_source_bytes = 0;           // at once
  std::vector<std::size_t> cached_bytes = {};  // by thread that has used the pool and still runs
};

// Slots that a thread keeps for itself. The owner's alone while it is inside the lock.
struct alignas(kApart) SlotCache {
  // Of one size: two magazines, so that many slots can go either way before one is exchanged.
  struct Bin {
    std::atomic<std::uintptr_t> top{MagazineTop::kNone};  // atomic only for those who count from outside
    std::uintptr_t end = MagazineTop::kNone;              // no further
    Magazine* spare = nullptr;                            // full or empty, nearly always
    std::atomic<std::uint64_t> spare_count{0};

    MagazineTop load() const noexcept { return {top.load(std::memory_order_relaxed)}; }
    void store(MagazineTop value) noexcept { top.store(value.word, std::memory_order_relaxed); }
  };
  std::array<Bin, slot_bins::kCount> bins;
  OwnerLock<> lock;
  std::atomic<std::uint64_t> allocations{0};  // relaxed: only the owner writes it, others read it for statistics
};

class SlotStore {
 public:
  SlotStore(const PoolOptions& options, std::shared_ptr<MemorySource> source);
  ~SlotStore();
  SlotStore(const SlotStore&) = delete;
  SlotStore& operator=(const SlotStore&) = delete;

  // Null: refused; take_slowly() says why.
  [[gnu::always_inline]] SlotRecord* take(std::uint32_t bin, Refusal& why) noexcept {
    // At a place that does not depend on the store: the processor goes on with the guess that it is the right one.
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
  // `bin` is the record's; the caller has it without having to read the record.
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
  // The calling thread ends: its slots go back. Only ThreadCaches calls it.
  void retire(SlotCache& cache);
  // Counts it.
  Refusal refuse(Refusal why) noexcept {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return why;
  }

 private:
  // Of the calling thread, by store; a store's serial is never used again, so what a dead one left behind is harmless.
  struct Own {
    std::uint64_t serial = 0;
    SlotCache* cache = nullptr;
  };
  static constinit thread_local Own last_;

  // A piece of the source's memory, cut into slots. The records stay when the memory goes back.
  struct Chunk {
    std::unique_ptr<SlotRecord[]> records;
    std::uint32_t room = 0;   // records
    std::uint32_t count = 0;  // slots now
    std::byte* memory = nullptr;
    std::size_t size_bytes = 0;
  };
  // Of one size.
  struct alignas(kApart) Shelf {
    MagazineStack full;  // with at least one slot each
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

  // All below: with the mutex held, and not inside a cache's lock.
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
  std::deque<Magazine> magazines_;  // every one that was ever made
  std::uint64_t allocations_ = 0;   // by threads that have ended
  std::uint64_t source_calls_ = 0, drained_ = 0;
  std::uint64_t frees_at_failure_ = UINT64_MAX;  // when last no chunk could be returned
  std::size_t source_bytes_ = 0, peak_source_bytes_ = 0;
  std::atomic<std::uint64_t> refused_{0};

  // With callers or in caches. Changed when magazines are exchanged, so that the slots themselves need not be counted.
  alignas(kApart) std::atomic<std::int64_t> out_bytes_{0};
  std::atomic<std::int64_t> out_slots_{0};
  std::atomic<std::int64_t> peak_bytes_{0};
};

}  // namespace weir
