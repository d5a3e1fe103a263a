// Slot sizes, and free slots in magazines that travel between threads, with the stack on which magazines wait. The
// record of a slot is here too, in host memory, because the slot itself may be device memory.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "channel/system.h"

namespace weir {

class SlotStore;

// Slot sizes: four per doubling, so that at most a fifth of a slot is wasted (except for small payloads).
namespace slot_bins {

inline constexpr std::size_t kSmallest = 256;
inline constexpr std::uint32_t kCount = 1 + 4 * 22;  // up to 1 GiB

// 256, 320, 384, 448, 512, 640 ... bytes: all of them multiples of a cache line.
constexpr std::size_t bytes_of(std::uint32_t bin) noexcept {
  if (bin == 0) return kSmallest;
  return (kSmallest / 4 << (bin - 1) / 4) * (5 + (bin - 1) % 4);
}
// The smallest bin that holds this many bytes; kCount or more if there is none.
constexpr std::uint32_t bin_of(std::size_t bytes) noexcept {
  const std::size_t last = (bytes <= kSmallest ? kSmallest : bytes) - 1;
  const auto bits = static_cast<std::uint32_t>(std::bit_width(last));   // 8 for the smallest
  const auto quarter = static_cast<std::uint32_t>(last >> (bits - 3));  // 4 to 7
  return bytes <= kSmallest ? 0 : 4 * (bits - 9) + quarter - 3;
}
static_assert(bin_of(0) == 0 && bin_of(256) == 0 && bin_of(257) == 1 && bin_of(512) == 4 && bin_of(513) == 5);
static_assert(bytes_of(1) == 320 && bytes_of(4) == 512 && bytes_of(5) == 640 && bytes_of(kCount - 1) == 1U << 30);
static_assert(bytes_of(bin_of(1 << 20)) == 1 << 20 && bytes_of(bin_of(1000)) == 1024);

}  // namespace slot_bins

// The record of one slot, or of one Payload in plain memory. Lives as long as the pool; in release builds a slot's
// record is only read after it was set up, so both sides of a channel keep its line in their caches.
struct alignas(kLineBytes) SlotRecord {
  std::byte* data = nullptr;
  SlotStore* store = nullptr;  // null: plain memory after this record
  std::uint64_t serial = 0;    // the store's
  std::uint32_t bin = 0;
  std::uint32_t chunk = 0;                   // index within the bin
  bool has_pattern = false;                  // both ends are marked as free; only with memory checks
  std::size_t size_bytes = 0;                // of the Payload
  std::atomic<std::uint32_t> references{0};  // Payloads that share it: see Payload
  std::atomic<std::uint32_t> generation{0};  // odd while in use; counted only with memory checks
};
static_assert(sizeof(SlotRecord) == kLineBytes);

// Its current holder may change it; the stack hands it over.
struct alignas(256) Magazine {
  static constexpr std::uint32_t kMax = 29;

  std::atomic<Magazine*> next{nullptr};  // in a stack
  std::uint64_t count = 0;               // valid while nobody fills or empties it
  SlotRecord* slots[kMax + 1]{};
};
static_assert(sizeof(Magazine) == 256);

// The place of the next slot in some magazine: one word holds both the magazine and its slot count, because magazines
// are aligned to their size and never quite full.
struct MagazineTop {
  std::uintptr_t word = kNone;

  static constexpr std::uintptr_t kMask = sizeof(Magazine) - 1;
  static constexpr std::uintptr_t kNone = offsetof(Magazine, slots);  // no magazine, hence no slot

  static MagazineTop of(Magazine* magazine, std::uint64_t count) noexcept {
    return {std::bit_cast<std::uintptr_t>(magazine) + kNone + count * sizeof(SlotRecord*)};
  }
  bool is_empty() const noexcept { return (word & kMask) == kNone; }
  std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(((word & kMask) - kNone) / sizeof(SlotRecord*));
  }
  Magazine* magazine() const noexcept { return std::bit_cast<Magazine*>(word & ~kMask); }
  SlotRecord** slot() const noexcept { return std::bit_cast<SlotRecord**>(word); }
};

// Any thread. Magazines must outlive the stack.
class MagazineStack {
 public:
  void push(Magazine& magazine) noexcept {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    std::uint64_t mine = 0;
    do {
      magazine.next.store(top(head), std::memory_order_relaxed);  // published by the exchange
      mine = above(head, &magazine);
    } while (!head_.compare_exchange_weak(head, mine, std::memory_order_release,  // pairs with the acquire in pop()
                                          std::memory_order_relaxed));
  }
  // Null: empty.
  Magazine* pop() noexcept {
    std::uint64_t head = head_.load(std::memory_order_acquire);  // pairs with the release in push()
    for (;;) {
      Magazine* const magazine = top(head);
      if (magazine == nullptr) return nullptr;
      // Another thread may own it by now and write to it; then the exchange fails.
      Magazine* const next = magazine->next.load(std::memory_order_relaxed);
      // Also a release: a thread that sees the stack without it knows who has it (SlotStore::is_all_in_use()).
      if (head_.compare_exchange_weak(head, above(head, next), std::memory_order_acq_rel, std::memory_order_acquire))
        return magazine;
    }
  }
  // Changes with every push and pop; also shows whether the stack was empty then.
  std::uint64_t version() const noexcept { return head_.load(std::memory_order_acquire); }  // pairs with push()
  static bool is_empty(std::uint64_t version) noexcept { return top(version) == nullptr; }

 private:
  // 48 bits of an address whose lowest 8 are 0, and 24 bits that count changes: without them, a pop that was suspended
  // could exchange a head that went and came back.
  static constexpr int kCountBits = 24;
  static Magazine* top(std::uint64_t head) noexcept { return std::bit_cast<Magazine*>(head >> kCountBits << 8); }
  static std::uint64_t above(std::uint64_t head, Magazine* magazine) noexcept {
    const std::uint64_t count = (head + 1) & ((std::uint64_t{1} << kCountBits) - 1);
    return std::bit_cast<std::uint64_t>(magazine) >> 8 << kCountBits | count;
  }

  std::atomic<std::uint64_t> head_{0};
};

}  // namespace weir
