// A memory pool: slots of fixed sizes that are reused, with owners that can travel inside a command. The memory comes
// from a source: host, pinned, or device memory, which the pool never touches.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "channel/payload_handle.h"
#include "channel/slot_store.h"

namespace weir {

// For checked builds: called when a slot is taken, used and given back. An error ends the program with a message.
namespace slot_check {

[[noreturn]] void abort_with(const char* what, const SlotRecord& record) noexcept;
std::uint32_t take(SlotRecord& record, std::size_t size_bytes) noexcept;  // returns its new generation
void give(SlotRecord& record, std::uint32_t generation) noexcept;
inline void use(const SlotRecord& record, std::uint32_t generation) noexcept {
  // Relaxed: a correct program has learned of the slot by other means.
  if ((record.generation.load(std::memory_order_relaxed) & payload_handle::kGenerationMask) != generation) [[unlikely]]
    abort_with("is used after it was released", record);
}

}  // namespace slot_check

// Owns a slot and returns it, on any thread. Must not outlive its pool.
class Slot {
 public:
  Slot() = default;
  Slot(Slot&& other) noexcept : handle_(std::exchange(other.handle_, 0)), size_(std::exchange(other.size_, 0)) {}
  Slot& operator=(Slot&& other) noexcept {
    Slot old(std::move(*this));
    handle_ = std::exchange(other.handle_, 0);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~Slot() { reset(); }

  explicit operator bool() const noexcept { return handle_ != 0; }
  // Aligned to a cache line. Device memory has an address too, which the host must not dereference.
  std::byte* data() const noexcept {
    if constexpr (kChecksMemory) {
      if (handle_ != 0) slot_check::use(record(), payload_handle::generation(handle_));
    }
    return handle_ == 0 ? nullptr : record().data;
  }
  std::size_t size_bytes() const noexcept { return size_ & kSizeMask; }  // as requested
  std::size_t capacity_bytes() const noexcept { return handle_ == 0 ? 0 : slot_bins::bytes_of(bin()); }
  // Only if is_host_accessible().
  std::span<std::byte> bytes() const noexcept { return {data(), size_bytes()}; }
  bool is_host_accessible() const noexcept { return handle_ != 0 && record().store->is_host_accessible(); }

  [[gnu::always_inline]] void reset() noexcept {
    if (handle_ == 0) return;
    SlotRecord& slot = record();
    if constexpr (kChecksMemory) slot_check::give(slot, payload_handle::generation(handle_));
    handle_ = 0;
    SlotStore::give(slot, bin());
    size_ = 0;
  }

  // Ownership as a number that travels in a command. The receiver must adopt it exactly once.
  PayloadHandle release() noexcept {
    size_ = 0;
    return std::exchange(handle_, 0);
  }
  // `size_bytes` as requested, which the handle does not contain.
  static Slot adopt(PayloadHandle handle, std::size_t size_bytes) noexcept {
    if constexpr (kChecksMemory) check(handle, size_bytes);
    return {handle, payload_handle::bin(handle), size_bytes};
  }

 private:
  friend class MemoryPool;
  friend class Payload;

  // The size of the slot and the requested size in one word. Not read from the handle: if a slot is freed soon, the
  // processor need not wait for the handle to know its list (8 ns instead of 11 for a pair on a Neoverse-V1, 2026-11).
  static constexpr int kBinShift = 56;
  static constexpr std::uint64_t kSizeMask = (std::uint64_t{1} << kBinShift) - 1;

  Slot(PayloadHandle handle, std::uint32_t bin, std::size_t size_bytes) noexcept
      : handle_(handle), size_(size_bytes | static_cast<std::uint64_t>(bin) << kBinShift) {}
  SlotRecord& record() const noexcept { return *payload_handle::record<SlotRecord>(handle_); }
  std::uint32_t bin() const noexcept { return static_cast<std::uint32_t>(size_ >> kBinShift); }
  static void check(PayloadHandle handle, std::size_t size_bytes) noexcept;

  PayloadHandle handle_ = 0;
  std::uint64_t size_ = 0;
};

// Any thread may allocate, and free what another has allocated.
class MemoryPool {
 public:
  // Rejects a limit below the smallest slot.
  explicit MemoryPool(const PoolOptions& options = {},
                      std::shared_ptr<MemorySource> source = std::make_shared<HostMemorySource>());
  // Every slot must have been returned. Otherwise checked builds end the program, and others leak the memory.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Contents are not initialized. Throws an Error that states which size does not fit into what.
  [[gnu::always_inline]] Slot allocate(std::size_t size_bytes) {
    Refusal why;
    SlotRecord* const record = take(size_bytes, why);
    if (record == nullptr) [[unlikely]]
      throw_refusal(size_bytes, why);
    return own(*record, size_bytes);
  }
  // Empty if refused, with the reason.
  [[gnu::always_inline]] Slot try_allocate(std::size_t size_bytes, Refusal& why) noexcept {
    SlotRecord* const record = take(size_bytes, why);
    if (record == nullptr) [[unlikely]]
      return {};
    return own(*record, size_bytes);
  }
  [[gnu::always_inline]] Slot try_allocate(std::size_t size_bytes) noexcept {
    Refusal why;
    return try_allocate(size_bytes, why);
  }

  PoolStatistics statistics() const { return store_->statistics(); }
  const PoolOptions& options() const noexcept { return store_->options(); }
  std::size_t largest_bytes() const noexcept { return largest_bytes_; }  // of one slot
  MemoryKind kind() const noexcept { return store_->source().kind(); }
  bool is_host_accessible() const noexcept { return store_->is_host_accessible(); }

 private:
  [[gnu::always_inline]] SlotRecord* take(std::size_t size_bytes, Refusal& why) noexcept {
    if (size_bytes <= largest_bytes_) [[likely]]
      return store_->take(slot_bins::bin_of(size_bytes), why);
    why = store_->refuse(Refusal::too_large);
    return nullptr;
  }
  [[gnu::always_inline]] static Slot own(SlotRecord& record, std::size_t size_bytes) noexcept {
    const std::uint32_t bin = slot_bins::bin_of(size_bytes);
    std::uint32_t generation = 0;
    if constexpr (kChecksMemory) generation = slot_check::take(record, size_bytes);
    return {payload_handle::make(HandleKind::slot, &record, bin, generation), bin, size_bytes};
  }
  [[noreturn]] void throw_refusal(std::size_t size_bytes, Refusal why) const;

  std::unique_ptr<SlotStore> store_;
  std::size_t largest_bytes_;
};

}  // namespace weir
