#include "channel/slot_store.h"

#include <algorithm>
#include <utility>

#include "channel/payload_handle.h"
#include "channel/thread_caches.h"

#if WEIR_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weir {
namespace {

void poison([[maybe_unused]] const std::byte* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if WEIR_HAS_ASAN
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}
void unpoison([[maybe_unused]] const std::byte* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if WEIR_HAS_ASAN
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

}  // namespace

constinit thread_local SlotStore::Own SlotStore::last_{};

SlotStore::SlotStore(const PoolOptions& options, std::shared_ptr<MemorySource> source)
    : serial_(ThreadCaches::open_store()),
      is_host_accessible_(source->is_host_accessible()),
      options_(options),
      source_(std::move(source)),
      shelves_(new Shelf[slot_bins::kCount]) {
  System::prepare();
  for (std::uint32_t bin = 0; bin < slot_bins::kCount; ++bin) {
    const std::size_t bytes = slot_bins::bytes_of(bin);
    // A thread has two magazines of each size. At most a sixteenth of the limit, so that in a small pool most slots are
    // not in caches.
    const std::size_t most = std::min(options_.thread_cache_bytes / 2, options_.limit_bytes / 16) / bytes;
    shelves_[bin].most = static_cast<std::uint32_t>(std::clamp<std::size_t>(most, 1, Magazine::kMax));
  }
}

SlotStore::~SlotStore() {
  ThreadCaches::close_store(serial_);
  for (std::uint32_t bin = 0; bin < slot_bins::kCount; ++bin) {
    for (const Chunk& chunk : shelves_[bin].chunks) {
      if (chunk.memory == nullptr) continue;
      if (is_host_accessible_) unpoison(chunk.memory, chunk.size_bytes);
      source_->release(chunk.memory, chunk.size_bytes);
    }
  }
}

SlotCache* SlotStore::find_or_make_cache() noexcept {
  if (last_.serial == serial_) return last_.cache;
  if (ThreadCaches::has_ended()) return nullptr;
  try {
    ThreadCaches& all = ThreadCaches::own();
    if (SlotCache* const cache = all.find(serial_); cache != nullptr) {
      last_ = {serial_, cache};
      return cache;
    }
    auto made = std::make_unique<SlotCache>();
    SlotCache* const cache = made.get();
    {
      const std::lock_guard lock(mutex_);
      caches_.push_back(std::move(made));
    }
    all.add({serial_, this, cache});
    last_ = {serial_, cache};
    return cache;
  } catch (const std::bad_alloc&) {
    return nullptr;  // slower without a cache, but correct
  }
}

SlotRecord* SlotStore::take_slowly(std::uint32_t bin, Refusal& why) noexcept {
  SlotCache* const cache = find_or_make_cache();
  while (cache != nullptr) {
    if (!cache->lock.enter()) {
      regain(*cache);
      continue;
    }
    SlotCache::Bin& mine = cache->bins[bin];
    SlotRecord* record = nullptr;
    if (!mine.load().is_empty() || refill(*cache, bin)) record = pop(*cache, mine, mine.load());
    cache->lock.leave();
    if (record != nullptr) return record;
    break;
  }
  const std::lock_guard lock(mutex_);
  SlotRecord* record = nullptr;
  try {
    record = search(bin, why);
  } catch (const std::bad_alloc&) {  // from our own tables
    why = Refusal::source;
  }
  if (record == nullptr) {
    refuse(why);
    return nullptr;
  }
  ++allocations_;
  count_out(1, bin);
  return record;
}

void SlotStore::give_slowly(SlotRecord& record) noexcept {
  SlotCache* const cache = find_or_make_cache();
  Shelf& shelf = shelves_[record.bin];
  while (cache != nullptr) {
    if (!cache->lock.enter()) {
      regain(*cache);
      continue;
    }
    SlotCache::Bin& mine = cache->bins[record.bin];
    const bool has_room = mine.load().word != mine.end || make_room(*cache, record.bin);
    if (has_room) push(mine, record, mine.load());
    cache->lock.leave();
    if (has_room) return;
    const std::lock_guard lock(mutex_);
    shelf.empty.push(empty_magazine(shelf));
  }
  const std::lock_guard lock(mutex_);
  push_shared(shelf, record);
  count_out(-1, record.bin);
}

// With the cache's lock held: loads the next magazine with slots, if there is one.
bool SlotStore::refill(SlotCache& cache, std::uint32_t bin) noexcept {
  SlotCache::Bin& mine = cache.bins[bin];
  Shelf& shelf = shelves_[bin];
  Magazine* const emptied = mine.load().magazine();
  if (const std::uint64_t spare = mine.spare_count.load(std::memory_order_relaxed); spare != 0) {
    load(mine, mine.spare, spare, shelf.most);
    mine.spare = emptied;
    mine.spare_count.store(0, std::memory_order_relaxed);
    return true;
  }
  Magazine* const magazine = shelf.full.pop();
  if (magazine == nullptr) return false;
  if (mine.spare != nullptr) shelf.empty.push(*mine.spare);
  mine.spare = emptied;
  load(mine, magazine, magazine->count, shelf.most);
  count_out(static_cast<std::int64_t>(magazine->count), bin);
  return true;
}

// With the cache's lock held: replaces a full magazine by one with room. False: there is none.
bool SlotStore::make_room(SlotCache& cache, std::uint32_t bin) noexcept {
  SlotCache::Bin& mine = cache.bins[bin];
  Shelf& shelf = shelves_[bin];
  Magazine* const filled = mine.load().magazine();
  const std::uint64_t spare = mine.spare_count.load(std::memory_order_relaxed);
  Magazine* magazine = mine.spare;
  if (magazine == nullptr || spare != 0) {
    magazine = shelf.empty.pop();
    if (magazine == nullptr) return false;
    if (mine.spare != nullptr) {
      mine.spare->count = spare;
      shelf.full.push(*mine.spare);
      count_out(-static_cast<std::int64_t>(spare), bin);
    }
  }
  mine.spare = filled;
  mine.spare_count.store(mine.load().count(), std::memory_order_relaxed);
  load(mine, magazine, 0, shelf.most);
  return true;
}

void SlotStore::load(SlotCache::Bin& mine, Magazine* magazine, std::uint64_t count, std::uint32_t most) noexcept {
  mine.store(MagazineTop::of(magazine, count));
  mine.end = MagazineTop::of(magazine, most).word;
}

void SlotStore::count_out(std::int64_t slots, std::uint32_t bin) noexcept {
  // Relaxed: counts only, they publish nothing.
  const std::int64_t bytes = slots * static_cast<std::int64_t>(slot_bins::bytes_of(bin));
  const std::int64_t now = out_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  out_slots_.fetch_add(slots, std::memory_order_relaxed);
  std::int64_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (peak < now && !peak_bytes_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void SlotStore::regain(SlotCache& cache) noexcept {
  const std::lock_guard lock(mutex_);
  cache.lock.regain();
}

SlotRecord* SlotStore::search(std::uint32_t bin, Refusal& why) {
  const std::size_t slot = slot_bins::bytes_of(bin);
  const auto room = [&] { return options_.limit_bytes - std::min(options_.limit_bytes, source_bytes_); };
  Shelf& shelf = shelves_[bin];
  if (SlotRecord* const record = pop_shared(shelf); record != nullptr) return record;
  why = Refusal::exhausted;
  if (room() >= slot) {
    if (SlotRecord* const record = add_chunk(bin, room()); record != nullptr) return record;
    why = Refusal::source;
  }
  // Another thread's cache may have one.
  bool is_drained = false;
  if (!is_all_in_use(bin)) {
    drain();
    is_drained = true;
    if (SlotRecord* const record = pop_shared(shelf); record != nullptr) return record;
  }
  // Use free memory of other sizes.
  const InUse now = in_use();
  if (room() + source_bytes_ >= now.bytes + slot && now.frees != frees_at_failure_) {
    if (!is_drained) drain();
    const std::size_t before = source_bytes_;
    return_chunks(why == Refusal::source ? slot : slot - std::min(slot, room()));
    if (source_bytes_ == before) frees_at_failure_ = now.frees;
    if (room() >= slot) {
      if (SlotRecord* const record = add_chunk(bin, slot); record != nullptr) return record;
      why = Refusal::source;
    }
  }
  if (options_.when_exhausted == Exhaustion::refuse) return nullptr;
  SlotRecord* const record = add_chunk(bin, SIZE_MAX);
  if (record == nullptr) why = Refusal::source;
  return record;
}

SlotRecord* SlotStore::pop_shared(Shelf& shelf) noexcept {
  Magazine* const magazine = shelf.full.pop();
  if (magazine == nullptr) return nullptr;
  SlotRecord* const record = magazine->slots[--magazine->count];
  (magazine->count == 0 ? shelf.empty : shelf.full).push(*magazine);
  return record;
}

void SlotStore::push_shared(Shelf& shelf, SlotRecord& record) {
  Magazine* magazine = shelf.full.pop();
  if (magazine != nullptr && magazine->count == shelf.most) {
    shelf.full.push(*magazine);
    magazine = nullptr;
  }
  if (magazine == nullptr) magazine = &empty_magazine(shelf);
  magazine->slots[magazine->count++] = &record;
  shelf.full.push(*magazine);
}

Magazine& SlotStore::empty_magazine(Shelf& shelf) {
  if (Magazine* const magazine = shelf.empty.pop(); magazine != nullptr) {
    magazine->count = 0;
    return *magazine;
  }
  return magazines_.emplace_back();
}

// Splits memory from the source into slots; returns one and shares the others. Null: the source has none.
SlotRecord* SlotStore::add_chunk(std::uint32_t bin, std::size_t allowed_bytes) {
  constexpr std::size_t kMaxSlots = 1024;
  const std::size_t slot = slot_bins::bytes_of(bin);
  Shelf& shelf = shelves_[bin];
  // A sixteenth of the limit, so that the first size requested does not take all of it.
  const std::size_t chunk_bytes = std::min(options_.chunk_bytes, options_.limit_bytes / 16);
  auto count =
      static_cast<std::uint32_t>(std::clamp<std::size_t>(std::min(chunk_bytes, allowed_bytes) / slot, 1, kMaxSlots));
  auto idle =
      std::find_if(shelf.chunks.begin(), shelf.chunks.end(), [](const Chunk& c) { return c.memory == nullptr; });
  if (idle == shelf.chunks.end()) {
    Chunk chunk;
    chunk.records.reset(new SlotRecord[count]);
    chunk.room = count;
    shelf.chunks.push_back(std::move(chunk));
    idle = shelf.chunks.end() - 1;
  }
  count = std::min(count, idle->room);
  std::byte* const memory = source_->allocate(count * slot);
  if (memory == nullptr) return nullptr;
  idle->memory = memory;
  idle->size_bytes = count * slot;
  idle->count = count;
  ++source_calls_;
  source_bytes_ += idle->size_bytes;
  peak_source_bytes_ = std::max(peak_source_bytes_, source_bytes_);
  if (is_host_accessible_) poison(memory, idle->size_bytes);
  for (std::uint32_t i = 0; i < count; ++i) {
    SlotRecord& record = idle->records[i];
    record.data = memory + i * slot;
    record.store = this;
    record.serial = serial_;
    record.has_pattern = false;
    record.bin = bin;
    record.chunk = static_cast<std::uint32_t>(idle - shelf.chunks.begin());
    if (i != 0) push_shared(shelf, record);
  }
  return &idle->records[0];
}

// Does not stop other threads; false if it cannot decide.
bool SlotStore::is_all_in_use(std::uint32_t bin) const noexcept {
  const std::uint64_t version = shelves_[bin].full.version();
  if (!MagazineStack::is_empty(version)) return false;
  for (const auto& cache : caches_) {
    // A thread inside its lock may be about to store what it has just taken off the stack: a reader that sees the stack
    // without it sees the thread inside, or its result. Threads that exchange magazines do not leave lightly.
    if (cache->lock.is_inside()) return false;
    const SlotCache::Bin& mine = cache->bins[bin];
    if (!mine.load().is_empty() || mine.spare_count.load(std::memory_order_relaxed) != 0) return false;
  }
  return shelves_[bin].full.version() == version;
}

// Afterwards all free slots are on the stacks, and stay there until the mutex is released: threads need it to regain
// their caches.
void SlotStore::drain() {
  ++drained_;
  OwnerLock<>::take([&](const auto& visit) {
    for (const auto& cache : caches_) visit(cache->lock);
  });
  for (const auto& cache : caches_) drain(*cache);
}

void SlotStore::drain(SlotCache& cache) {
  for (std::uint32_t bin = 0; bin < slot_bins::kCount; ++bin) {
    SlotCache::Bin& theirs = cache.bins[bin];
    const auto put = [&](Magazine* magazine, std::uint64_t count) {
      if (magazine == nullptr) return;
      magazine->count = count;
      (count == 0 ? shelves_[bin].empty : shelves_[bin].full).push(*magazine);
      if (count != 0) count_out(-static_cast<std::int64_t>(count), bin);
    };
    put(theirs.load().magazine(), theirs.load().count());
    put(std::exchange(theirs.spare, nullptr), theirs.spare_count.load(std::memory_order_relaxed));
    theirs.spare_count.store(0, std::memory_order_relaxed);
    theirs.store({});
    theirs.end = MagazineTop::kNone;
  }
}

// Returns chunks whose slots are all free to the source until that is enough; large ones first.
void SlotStore::return_chunks(std::size_t wanted_bytes) {
  for (std::uint32_t bin = slot_bins::kCount; bin-- > 0 && wanted_bytes > 0;) return_free(bin, wanted_bytes);
}

void SlotStore::return_free(std::uint32_t bin, std::size_t& wanted_bytes) {
  Shelf& shelf = shelves_[bin];
  std::vector<SlotRecord*> slots;
  std::vector<std::uint32_t> counts(shelf.chunks.size());
  while (SlotRecord* const record = pop_shared(shelf)) {
    slots.push_back(record);
    ++counts[record->chunk];
  }
  std::vector<bool> is_gone(shelf.chunks.size());
  for (std::size_t i = 0; i < counts.size() && wanted_bytes > 0; ++i) {
    Chunk& chunk = shelf.chunks[i];
    if (chunk.memory == nullptr || counts[i] != chunk.count) continue;
    if (is_host_accessible_) unpoison(chunk.memory, chunk.size_bytes);
    source_->release(std::exchange(chunk.memory, nullptr), chunk.size_bytes);
    source_bytes_ -= chunk.size_bytes;
    wanted_bytes -= std::min(wanted_bytes, chunk.size_bytes);
    is_gone[i] = true;
  }
  for (SlotRecord* const record : slots)
    if (!is_gone[record->chunk]) push_shared(shelf, *record);
}

void SlotStore::retire(SlotCache& cache) {
  last_ = {};
  const std::lock_guard lock(mutex_);
  drain(cache);
  allocations_ += cache.allocations.load(std::memory_order_relaxed);
  std::erase_if(caches_, [&](const auto& kept) { return kept.get() == &cache; });
}

SlotStore::Cached SlotStore::cached(const SlotCache& cache) noexcept {
  Cached all;
  for (std::uint32_t bin = 0; bin < slot_bins::kCount; ++bin) {
    const SlotCache::Bin& theirs = cache.bins[bin];
    const std::size_t slots = theirs.load().count() + theirs.spare_count.load(std::memory_order_relaxed);
    all.slots += slots;
    all.bytes += slots * slot_bins::bytes_of(bin);
  }
  return all;
}

SlotStore::InUse SlotStore::in_use() const noexcept {
  std::int64_t bytes = out_bytes_.load(std::memory_order_relaxed);
  std::int64_t slots = out_slots_.load(std::memory_order_relaxed);
  InUse all;
  all.allocations = allocations_;
  for (const auto& cache : caches_) {
    all.allocations += cache->allocations.load(std::memory_order_relaxed);
    const Cached theirs = cached(*cache);
    bytes -= static_cast<std::int64_t>(theirs.bytes);
    slots -= static_cast<std::int64_t>(theirs.slots);
  }
  // Threads continue during the count, so a difference may briefly be off.
  all.bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, bytes));
  all.frees = all.allocations - std::min(all.allocations, static_cast<std::uint64_t>(std::max<std::int64_t>(0, slots)));
  return all;
}

PoolStatistics SlotStore::statistics() const {
  const std::lock_guard lock(mutex_);
  PoolStatistics all;
  const InUse now = in_use();
  all.allocations = now.allocations;
  all.frees = now.frees;
  all.allocated_bytes = now.bytes;
  for (const auto& cache : caches_) all.cached_bytes.push_back(cached(*cache).bytes);
  all.recycled = all.allocations - std::min(all.allocations, source_calls_);
  all.source_calls = source_calls_;
  all.refused = refused_.load(std::memory_order_relaxed);
  all.drained = drained_;
  all.peak_bytes = static_cast<std::size_t>(peak_bytes_.load(std::memory_order_relaxed));
  all.source_bytes = source_bytes_;
  all.peak_source_bytes = peak_source_bytes_;
  return all;
}

}  // namespace weir
