// Bytes that several owners share without copying: one count beside the bytes, for any size. Shared bytes are never
// written.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "channel/memory_pool.h"

namespace weir {

// One reference; may be cloned and dropped on any thread, but each object is used by one thread at a time. If the bytes
// are a pool's slot, the pool must outlive them.
class Payload {
 public:
  Payload() = default;
  // Takes over the slot.
  explicit Payload(Slot&& slot) noexcept;
  // In plain memory, aligned to a cache line. Contents are not initialized. Throws if there is no memory.
  static Payload allocate(std::size_t size_bytes);
  static Payload copy_of(std::span<const std::byte> bytes);

  Payload(const Payload& other) noexcept : handle_(other.handle_) {
    // Relaxed: the cloning thread has a reference, so the count cannot reach 0 meanwhile.
    if (handle_ != 0) record().references.fetch_add(1, std::memory_order_relaxed);
  }
  Payload(Payload&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Payload& operator=(Payload other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Payload() { reset(); }
  Payload clone() const noexcept { return *this; }

  void reset() noexcept {
    if (handle_ == 0) return;
    SlotRecord& shared = record();
    const PayloadHandle handle = std::exchange(handle_, 0);
    // Release: this owner's reads and writes come before the bytes are freed. Pairs with the acquire in dispose().
    if (shared.references.fetch_sub(1, std::memory_order_release) == 1) dispose(shared, handle);
  }

  explicit operator bool() const noexcept { return handle_ != 0; }
  // Their address; device memory has one too, which the host must not dereference.
  const std::byte* data() const noexcept { return handle_ == 0 ? nullptr : record().data; }
  std::size_t size_bytes() const noexcept { return handle_ == 0 ? 0 : record().size_bytes; }
  // Only if is_host_accessible().
  std::span<const std::byte> bytes() const noexcept { return {data(), size_bytes()}; }
  bool is_host_accessible() const noexcept {
    return handle_ != 0 && (record().store == nullptr || record().store->is_host_accessible());
  }
  // For filling it before it is shared: empty if there is another reference.
  std::span<std::byte> writable() const noexcept {
    // Pairs with the release in reset(): previous owners have finished reading.
    if (handle_ == 0 || record().references.load(std::memory_order_acquire) != 1) return {};
    return {record().data, record().size_bytes};
  }
  // The current number; others may change it at any time.
  std::uint32_t references() const noexcept {
    return handle_ == 0 ? 0 : record().references.load(std::memory_order_relaxed);
  }

  // The reference as a number that travels in a command. The receiver must adopt it exactly once.
  PayloadHandle release() noexcept { return std::exchange(handle_, 0); }
  static Payload adopt(PayloadHandle handle) noexcept {
    Payload payload;
    payload.handle_ = handle;
    if constexpr (kChecksMemory) payload.check();
    return payload;
  }

 private:
  SlotRecord& record() const noexcept {
    if constexpr (kChecksMemory) check();
    return *payload_handle::record<SlotRecord>(handle_);
  }
  void check() const noexcept;
  static void dispose(SlotRecord& shared, PayloadHandle handle) noexcept;

  PayloadHandle handle_ = 0;
};

// For commands that will not be executed: frees the slot or drops the reference. 0 is allowed.
void drop_payload(PayloadHandle handle) noexcept;

}  // namespace weir
