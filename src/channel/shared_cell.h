// A cell that may be overwritten while it is read: the reader detects this and discards what it read. Contents are
// copied word by word with atomics, so that such a read is not a data race. Knows no ring and no subscriber.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "channel/cells.h"
#include "channel/system.h"

namespace weir {

template <class T, class Sync>
class alignas(kLineBytes) SharedCell {
  static_assert(std::is_trivially_copyable_v<T>, "channels carry what can be copied like bytes");

 public:
  // position + 1 of the item in the cell, or with kBusy of the one being written; 0: nothing yet.
  static constexpr std::uint64_t kBusy = std::uint64_t{1} << 63;

  std::uint64_t stamp(std::memory_order order) const noexcept { return Sync::load(stamp_, order); }

  // Called by the one producer whose turn it is.
  void write(std::uint64_t position, const T& item) noexcept {
    Sync::note_write(this, sizeof(*this));
    Words words;
    const std::size_t count = words_of(item);
    std::memcpy(words.data(), contents(item), bytes_of(count));
    Sync::store(stamp_, (position + 1) | kBusy, std::memory_order_relaxed);  // ordered by the fence
    Sync::release_fence();  // a reader of any word below sees `busy` above; pairs with read_if()
    for (std::size_t i = 0; i < count; ++i) Sync::store(words_[i], words[i], Sync::kSpread);
    Sync::store(stamp_, position + 1, std::memory_order_release);  // pairs with the acquires of the readers
  }
  // For cells that nothing can overwrite, after the stamp was acquired.
  void read(T& item) const noexcept {
    Sync::note_read(this, sizeof(*this));
    std::memcpy(contents(item), words_.data(), kFirst);
    if constexpr (kHasUsedBytes) {
      const std::size_t count = words_of(item);
      if (count > kFirstWords) std::memcpy(contents(item) + kFirst, &words_[kFirstWords], bytes_of(count) - kFirst);
    }
  }
  // False: the cell holds another position by now, and `item` may be a mixture of both.
  bool read_if(std::uint64_t position, T& item) const noexcept {
    Words words;
    for (std::size_t i = 0; i < kFirstWords; ++i) words[i] = Sync::load(words_[i], Sync::kScan);
    std::memcpy(contents(item), words.data(), kFirst);
    if constexpr (kHasUsedBytes) {
      const std::size_t count = words_of(item);  // even of a torn item: never more than fits
      for (std::size_t i = kFirstWords; i < count; ++i) words[i] = Sync::load(words_[i], Sync::kScan);
      if (count > kFirstWords) std::memcpy(contents(item) + kFirst, &words[kFirstWords], bytes_of(count) - kFirst);
    }
    Sync::acquire_fence();  // pairs with the release_fence() in write()
    return stamp(std::memory_order_relaxed) == position + 1;
  }

 private:
  static constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
  static constexpr std::size_t kSkipped = LeavesRoomForStamp<T> ? kWordBytes : 0;
  static constexpr std::size_t kBytes = sizeof(T) - kSkipped;
  static constexpr std::size_t kWords = (kBytes + kWordBytes - 1) / kWordBytes;
  static constexpr bool kHasUsedBytes = requires(const T& item) { item.used_bytes(); };
  // For an item that knows its used size: the part that is always copied, which includes that size.
  static constexpr std::size_t kFirst = kHasUsedBytes ? std::min(kBytes, kLineBytes - kWordBytes) : kBytes;
  static constexpr std::size_t kFirstWords = kHasUsedBytes ? kFirst / kWordBytes : kWords;
  using Words = std::array<std::uint64_t, kWords>;

  static const std::byte* contents(const T& item) noexcept {
    return reinterpret_cast<const std::byte*>(&item) + kSkipped;
  }
  static std::byte* contents(T& item) noexcept { return reinterpret_cast<std::byte*>(&item) + kSkipped; }
  static std::size_t words_of(const T& item) noexcept {
    if constexpr (kHasUsedBytes) {
      const std::size_t words = (item.used_bytes() - kSkipped + kWordBytes - 1) / kWordBytes;
      return std::clamp(words, kFirstWords, kWords);
    } else {
      return kWords;
    }
  }
  // Copies whole words, although items may end within one.
  static std::size_t bytes_of(std::size_t words) noexcept { return std::min(words * kWordBytes, kBytes); }

  std::uint64_t stamp_ = 0;
  Words words_{};
};

}  // namespace weir
