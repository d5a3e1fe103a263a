#include "channel/payload.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/console.h"

namespace weir {
namespace {

// The reference count of a freed payload in plain memory.
constexpr std::uint32_t kGone = 0xdeadU << 16;

}  // namespace

Payload::Payload(Slot&& slot) noexcept {
  if (!slot) return;
  SlotRecord& record = slot.record();
  record.size_bytes = slot.size_bytes();
  record.references.store(1, std::memory_order_relaxed);  // not shared yet
  handle_ = payload_handle::as(HandleKind::payload, slot.release());
}

Payload Payload::allocate(std::size_t size_bytes) {
  void* const memory = ::operator new(sizeof(SlotRecord) + size_bytes, std::align_val_t{alignof(SlotRecord)});
  auto* const record = new (memory) SlotRecord;
  record->data = static_cast<std::byte*>(memory) + sizeof(SlotRecord);
  record->size_bytes = size_bytes;
  record->references.store(1, std::memory_order_relaxed);  // not shared yet
  Payload payload;
  payload.handle_ = payload_handle::make(HandleKind::payload, record, 0, 0);
  return payload;
}

Payload Payload::copy_of(std::span<const std::byte> bytes) {
  Payload payload = allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), payload.writable().begin());
  return payload;
}

void Payload::dispose(SlotRecord& shared, PayloadHandle handle) noexcept {
  // Reads the zero from this thread's own subtraction, and thereby acquires every earlier release: pairs with reset().
  static_cast<void>(shared.references.load(std::memory_order_acquire));
  if (shared.store != nullptr) {
    Slot::adopt(payload_handle::as(HandleKind::slot, handle), 0).reset();
    return;
  }
  if constexpr (kChecksMemory) shared.references.store(kGone, std::memory_order_relaxed);
  shared.~SlotRecord();
  ::operator delete(&shared, std::align_val_t{alignof(SlotRecord)});
}

void Payload::check() const noexcept {
  if (handle_ == 0) return;
  if (kind_of(handle_) != HandleKind::payload) {
    print_err("weir: {:#x} is no handle of a payload\n", handle_);
    std::abort();
  }
  const SlotRecord& record = *payload_handle::record<SlotRecord>(handle_);
  // Freed plain memory may contain anything. AddressSanitizer detects that; otherwise the mark helps until it is
  // overwritten.
  const std::uint32_t references = record.references.load(std::memory_order_relaxed);
  if (record.store != nullptr) slot_check::use(record, payload_handle::generation(handle_));
  if (references == 0 || references >= kGone)
    slot_check::abort_with("is used after its last reference was dropped", record);
}

void drop_payload(PayloadHandle handle) noexcept {
  if (kind_of(handle) == HandleKind::slot) Slot::adopt(handle, 0).reset();
  if (kind_of(handle) == HandleKind::payload) Payload::adopt(handle).reset();
}

}  // namespace weir
