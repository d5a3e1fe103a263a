#include "channel/memory_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/console.h"
#include "base/error.h"
#include "base/units.h"

#if WEIR_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weir {
namespace {

// Written over both ends of a free slot and checked when it is used again: any difference was written after the
// release. AddressSanitizer detects every access instead.
constexpr int kFreePattern = 0xdb;
constexpr std::size_t kPatternBytes = 64;

bool has_pattern(const std::byte* memory) noexcept {
  return std::all_of(memory, memory + kPatternBytes, [](std::byte b) { return b == std::byte{kFreePattern}; });
}

std::size_t largest(const PoolOptions& options) {
  std::size_t largest = std::min(options.largest_bytes, slot_bins::bytes_of(slot_bins::kCount - 1));
  if (options.when_exhausted == Exhaustion::refuse) largest = std::min(largest, options.limit_bytes);
  if (largest < slot_bins::kSmallest)
    reject(fmt::format("a memory pool of {} has no room for a slot: the smallest takes {}", format_bytes(largest),
                       format_bytes(slot_bins::kSmallest)),
           "Raise its limit or its largest slot.");
  std::uint32_t bin = std::min(slot_bins::bin_of(largest), slot_bins::kCount - 1);
  if (slot_bins::bytes_of(bin) > largest) --bin;
  return slot_bins::bytes_of(bin);
}

}  // namespace

namespace slot_check {

void abort_with(const char* what, const SlotRecord& record) noexcept {
  const std::size_t bytes = record.store != nullptr ? slot_bins::bytes_of(record.bin) : record.size_bytes;
  print_err("weir: {} of {} bytes at {} {}\n", record.store != nullptr ? "a pool's slot" : "a payload", bytes,
            static_cast<const void*>(record.data), what);
  std::abort();
}

std::uint32_t take(SlotRecord& record, std::size_t size_bytes) noexcept {
  // Relaxed: slots move between threads in magazines, which provide the ordering.
  const std::uint32_t generation = record.generation.fetch_add(1, std::memory_order_relaxed);
  if (generation % 2 != 0) abort_with("is in use and free at once: the pool's tables were overwritten", record);
  const std::size_t end = slot_bins::bytes_of(record.bin) - kPatternBytes;
  if (record.has_pattern && !(has_pattern(record.data) && has_pattern(record.data + end)))
    abort_with("was written to after it was released", record);
#if WEIR_HAS_ASAN
  if (record.store->is_host_accessible()) ASAN_UNPOISON_MEMORY_REGION(record.data, size_bytes);
#else
  static_cast<void>(size_bytes);
#endif
  return generation + 1;
}

void give(SlotRecord& record, std::uint32_t generation) noexcept {
  std::uint32_t now = record.generation.load(std::memory_order_relaxed);
  // If two threads free a slot at once, one of them must detect it.
  if ((now & payload_handle::kGenerationMask) != generation ||
      !record.generation.compare_exchange_strong(now, now + 1, std::memory_order_relaxed))
    abort_with("is freed twice", record);
  const std::size_t bytes = slot_bins::bytes_of(record.bin);
  record.has_pattern = !kHasAsan && record.store->is_host_accessible();
  if (record.has_pattern) {
    std::memset(record.data, kFreePattern, kPatternBytes);
    std::memset(record.data + bytes - kPatternBytes, kFreePattern, kPatternBytes);
  }
#if WEIR_HAS_ASAN
  if (record.store->is_host_accessible()) ASAN_POISON_MEMORY_REGION(record.data, bytes);
#endif
}

}  // namespace slot_check

void Slot::check(PayloadHandle handle, std::size_t size_bytes) noexcept {
  if (kind_of(handle) != HandleKind::slot) {
    print_err("weir: {:#x} is no handle of a pool's slot\n", handle);
    std::abort();
  }
  const SlotRecord& record = *payload_handle::record<SlotRecord>(handle);
  slot_check::use(record, payload_handle::generation(handle));
  if (size_bytes > slot_bins::bytes_of(record.bin))
    slot_check::abort_with("is adopted with more bytes than it has", record);
}

MemoryPool::MemoryPool(const PoolOptions& options, std::shared_ptr<MemorySource> source)
    : store_(std::make_unique<SlotStore>(options, std::move(source))), largest_bytes_(largest(options)) {}

MemoryPool::~MemoryPool() {
  const std::size_t bytes = store_->statistics().allocated_bytes;
  if (bytes == 0) return;
  if constexpr (kChecksMemory) {
    print_err("weir: a memory pool goes while {} of its slots are in use\n", format_bytes(bytes));
    std::abort();
  }
  store_.release();
}

void MemoryPool::throw_refusal(std::size_t size_bytes, Refusal why) const {
  const PoolStatistics now = statistics();
  const std::string asked = fmt::format("{} ({} bytes)", format_bytes(size_bytes), size_bytes);
  if (why == Refusal::too_large)
    reject(fmt::format("a payload of {} is larger than the pool's largest slot, {}; the pool may hold {} in all", asked,
                       format_bytes(largest_bytes_), format_bytes(options().limit_bytes)),
           "Send it in pieces, or raise the pool's largest slot and limit.");
  const std::size_t slot = slot_bins::bytes_of(slot_bins::bin_of(size_bytes));
  const std::string state = fmt::format("{} of {} are in use, {} are held from the {} memory",  //
                                        format_bytes(now.allocated_bytes), format_bytes(options().limit_bytes),
                                        format_bytes(now.source_bytes), name_of(kind()));
  if (why == Refusal::source)
    fail(fmt::format("no {} memory is left for a payload of {} (a slot of {}): {}", name_of(kind()), asked,
                     format_bytes(slot), state),
         "Free slots, or use smaller payloads.");
  fail(fmt::format("the pool is exhausted: a payload of {} needs a slot of {}, and {}", asked, format_bytes(slot),
                   state),
       "Wait until slots are freed, raise the pool's limit, or let it grow (Exhaustion::grow).");
}

}  // namespace weir
