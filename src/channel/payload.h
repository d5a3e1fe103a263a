// Bytes that several owners share without copying them: one count beside the bytes, whatever their size. What is shared
// is never written.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "channel/memory_pool.h"

namespace weir {

// One reference; may be cloned and dropped on any thread, each object used by one thread at a time. Bytes of a pool's
// slot keep their pool busy: it must outlive them.
class Payload {
 public:
  Payload() = default;
  // Takes the slot over.
  explicit Payload(Slot&& slot) noexcept;
  // In plain memory, aligned to a cache line. Contents are not set. Throws where there is none.
  static Payload allocate(std::size_t size_bytes);
  static Payload copy_of(std::span<const std::byte> bytes);

  Payload(const Payload& other) noexcept : handle_(other.handle_) {
    // Relaxed: whoever clones has a reference, so the count cannot reach 0 meanwhile.
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
    // Release: what this owner read and wrote comes before the end of the bytes. Pairs with the acquire in dispose().
    if (shared.references.fetch_sub(1, std::memory_order_release) == 1) dispose(shared, handle);
  }

  explicit operator bool() const noexcept { return handle_ != 0; }
  // Where they are; a device's memory has an address too, which the host must not follow.
  const std::byte* data() const noexcept { return handle_ == 0 ? nullptr : record().data; }
  std::size_t size_bytes() const noexcept { return handle_ == 0 ? 0 : record().size_bytes; }
  // Only where is_host_accessible().
  std::span<const std::byte> bytes() const noexcept { return {data(), size_bytes()}; }
  bool is_host_accessible() const noexcept {
    return handle_ != 0 && (record().store == nullptr || record().store->is_host_accessible());
  }
  // To fill it before it is shared: nothing where there is another reference.
  std::span<std::byte> writable() const noexcept {
    // Pairs with the release in reset(): those who dropped theirs have read what they wanted.
    if (handle_ == 0 || record().references.load(std::memory_order_acquire) != 1) return {};
    return {record().data, record().size_bytes};
  }
  // How many there are; others may change it at any time.
  std::uint32_t references() const noexcept {
    return handle_ == 0 ? 0 : record().references.load(std::memory_order_relaxed);
  }

  // The reference as a number that travels in a command. Whoever receives it adopts it, once.
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

// For commands that nobody will carry out: frees the slot or drops the reference. 0 is fine.
void drop_payload(PayloadHandle handle) noexcept;

}  // namespace weir
