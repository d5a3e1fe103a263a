// The cells of a ring: a stamp that decides whose turn a cell is, and the contents beside it. Knows no protocol.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "channel/system.h"

namespace weir {

// A power of two, at least the requested size. Rejects 0 and sizes beyond any machine's memory.
inline std::size_t ring_capacity(std::size_t asked) {
  if (asked == 0) reject("a channel of capacity 0 can carry nothing", "Use a capacity of 1 or more.");
  if (asked > (std::size_t{1} << 30)) reject("a channel's capacity is at most 2^30", "Use a smaller capacity.");
  return std::bit_ceil(asked);
}

// Records that reserve their first word for the channel are cells themselves: CommandRecord, WideCommandRecord.
template <class T>
concept LeavesRoomForStamp = requires { requires T::kLeavesRoomForStamp; };

template <class T, class Sync>
class Cells {
  static_assert(std::is_trivially_copyable_v<T>, "channels carry what can be copied like bytes");

  static constexpr std::size_t kStampBytes = sizeof(std::uint64_t);
  static constexpr std::size_t kSkipped = LeavesRoomForStamp<T> ? kStampBytes : 0;
  static constexpr std::size_t kBytes = sizeof(T) - kSkipped;
  static constexpr std::size_t kFirstLine = kLineBytes - kStampBytes;

 public:
  // In cache lines of its own, because the next cell is written while this one is read.
  struct alignas(kLineBytes) Cell {
    std::uint64_t stamp;
    alignas(kSkipped != 0 ? kStampBytes : alignof(T)) std::byte bytes[kBytes];
  };
  static_assert(!LeavesRoomForStamp<T> || sizeof(Cell) == sizeof(T));

  explicit Cells(std::size_t count) : mask_(count - 1), cells_(new Cell[count]) {
    std::memset(static_cast<void*>(cells_.get()), 0, count * sizeof(Cell));  // touches it before any measurement
    for (std::size_t i = 0; i < count; ++i) {
      Sync::store(cells_[i].stamp, 0, std::memory_order_relaxed);
      Sync::note_write(&cells_[i], sizeof(Cell));
    }
  }

  std::size_t size() const noexcept { return mask_ + 1; }

  Cell& at(std::uint64_t position) noexcept { return cells_[position & mask_]; }
  const Cell& at(std::uint64_t position) const noexcept { return cells_[position & mask_]; }

  static std::uint64_t stamp(const Cell& cell, std::memory_order order) noexcept {
    return Sync::load(cell.stamp, order);
  }
  static void set_stamp(Cell& cell, std::uint64_t value, std::memory_order order) noexcept {
    Sync::store(cell.stamp, value, order);
  }

  // Contents may be accessed only by the thread whose turn it is.
  static void write(Cell& cell, const T& item) noexcept {
    Sync::note_write(&cell, sizeof(Cell));
    copy(cell.bytes, contents(item), used(item));
  }
  static void read(const Cell& cell, T& item) noexcept {
    Sync::note_read(&cell, sizeof(Cell));
    copy(const_cast<std::byte*>(contents(item)), cell.bytes, used(in_place(cell)));
  }
  // In place. If a record reserves room for the stamp, the stamp is not part of its value.
  static const T& item(const Cell& cell) noexcept {
    Sync::note_read(&cell, sizeof(Cell));
    return in_place(cell);
  }

 private:
  static const std::byte* contents(const T& item) noexcept {
    return reinterpret_cast<const std::byte*>(&item) + kSkipped;
  }
  static const T& in_place(const Cell& cell) noexcept { return *reinterpret_cast<const T*>(cell.bytes - kSkipped); }
  // The used bytes of the contents.
  static std::size_t used(const T& item) noexcept {
    if constexpr (requires { item.used_bytes(); }) {
      return item.used_bytes() - kSkipped;
    } else {
      return kBytes;
    }
  }
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if constexpr (requires(const T& item) { item.used_bytes(); }) {
      // Whole lines, with sizes that the compiler knows: a call of memcpy for the used bytes costs more than it saves
      // (push of 128 bytes of parameters 20 ns, with lines 10.3; push and pop 44 and 18.7; Xeon, 2026-11).
      static_assert(kSkipped == kStampBytes && sizeof(T) % kLineBytes == 0 && alignof(T) >= kLineBytes);
      copy_words<kFirstLine>(to, from);
      for (std::size_t at = kFirstLine; at < bytes; at += kLineBytes)
        std::memcpy(std::assume_aligned<kLineBytes>(to + at), std::assume_aligned<kLineBytes>(from + at), kLineBytes);
    } else if constexpr (kBytes % sizeof(std::uint64_t) == 0 && kBytes <= kLineBytes) {
      copy_words<kBytes>(to, from);
    } else {
      std::memcpy(to, from, kBytes);
    }
  }
  // A record was just filled word by word, and on x86 a wide load that spans two such stores waits until they have left
  // the store buffer. The contents of a line begin 8 bytes into it, so a plain memcpy would load only such pairs (push
  // of an spsc 8.4 ns; Xeon, 2026-11). Therefore the first word is copied alone, and the others in natural pairs.
  template <std::size_t kCopied>
  static void copy_words(std::byte* to, const std::byte* from) noexcept {
    if constexpr (kSkipped != 0) {
      std::uint64_t word;
      std::memcpy(&word, from, sizeof word);
      asm("" : "+r"(word));  // keeps the compiler from merging it into a wide load
      std::memcpy(to, &word, sizeof word);
      std::memcpy(std::assume_aligned<16>(to + sizeof word), std::assume_aligned<16>(from + sizeof word),
                  kCopied - sizeof word);
    } else {
      std::memcpy(to, from, kCopied);
    }
  }

  std::uint64_t mask_;
  std::unique_ptr<Cell[]> cells_;
};

}  // namespace weir
