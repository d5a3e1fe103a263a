// A pool of memory: slots of fixed sizes that are really used again, with owners that can travel inside a command. The
// memory is a source's: the host's, pinned, or a device's, which the pool never touches.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "channel/payload_handle.h"
#include "channel/slot_store.h"

namespace weir {

// Checked builds: called around the life of a slot. They end the program with a message where something is wrong.
namespace slot_check {

[[noreturn]] void die(const char* what, const SlotRecord& record) noexcept;
std::uint32_t take(SlotRecord& record, std::size_t size_bytes) noexcept;  // its generation from now on
void give(SlotRecord& record, std::uint32_t generation) noexcept;
inline void use(const SlotRecord& record, std::uint32_t generation) noexcept {
  // Relaxed: a right program has been told about the slot by other means.
  if ((record.generation.load(std::memory_order_relaxed) & payload_handle::kGenerationMask) != generation) [[unlikely]]
    die("is used after it was released", record);
}

}  // namespace slot_check

// Owns a slot and gives it back, on whatever thread that happens. Must not outlive its pool.
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
  // Aligned to a cache line. A device's memory has an address too, which the host must not follow.
  std::byte* data() const noexcept {
    if constexpr (kChecksMemory) {
      if (handle_ != 0) slot_check::use(record(), payload_handle::generation(handle_));
    }
    return handle_ == 0 ? nullptr : record().data;
  }
  std::size_t size_bytes() const noexcept { return size_ & kSizeMask; }  // as it was asked for
  std::size_t capacity_bytes() const noexcept { return handle_ == 0 ? 0 : slot_bins::bytes_of(bin()); }
  // Only where is_host_accessible().
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

  // The ownership as a number that travels in a command. Whoever receives it adopts it, once.
  PayloadHandle release() noexcept {
    size_ = 0;
    return std::exchange(handle_, 0);
  }
  // `size_bytes` as it was asked for: the number does not know it.
  static Slot adopt(PayloadHandle handle, std::size_t size_bytes) noexcept {
    if constexpr (kChecksMemory) check(handle, size_bytes);
    return {handle, payload_handle::bin(handle), size_bytes};
  }

 private:
  friend class MemoryPool;
  friend class Payload;

  // The size of the slot and that which was asked for in one word. Not taken from the handle: where a slot is freed
  // soon, the processor need not wait for the handle to know which list it belongs to (8 ns instead of 11 for a pair on
  // a Neoverse-V1, 2026-11).
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
  // Every slot must be back. Otherwise checked builds end the program, and others let the memory live on for ever.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Contents are what was there before. Throws an Error that says which size does not fit into what.
  [[gnu::always_inline]] Slot allocate(std::size_t size_bytes) {
    Refusal why;
    SlotRecord* const record = take(size_bytes, why);
    if (record == nullptr) [[unlikely]]
      throw_refusal(size_bytes, why);
    return own(*record, size_bytes);
  }
  // Empty where it is refused, for that reason.
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
  std::size_t largest_bytes() const noexcept { return largest_bytes_; }  // that one slot can have
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
