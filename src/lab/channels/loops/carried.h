// The commands that contestants carry in benchmarks: how they are made, numbered, and recognised at the other end.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "channel/command_record.h"
#include "channel/payload.h"

namespace weir::channel_bench {

// For all of them: make() outside the timed part, mark() before each push, mark_of() after each pop. The result of
// mark_of() goes into the checksum, so it must touch the data that was sent.

// A synchronize: only its own cache line.
struct Small {
  using Item = CommandRecord;
  Item make() const noexcept { return make_synchronize(kAllStreams); }
  void mark(Item& item, std::uint32_t number) const noexcept { item.id = number; }
  std::uint32_t mark_of(const Item& item) const noexcept { return item.id; }
};

// A launch with 128 bytes of parameters; the number is at both ends of it.
struct Medium {
  using Item = WideCommandRecord;
  Item make() const noexcept {
    const std::array<std::byte, kWideParams> params{};
    return make_wide_launch(0, 7, {1024, 1, 1}, {256, 1, 1}, params);
  }
  void mark(Item& item, std::uint32_t number) const noexcept {
    item.line.id = number;
    std::memcpy(item.params.data() + kWideParams - sizeof number, &number, sizeof number);
  }
  std::uint32_t mark_of(const Item& item) const noexcept {
    std::uint32_t at_the_end = 0;
    std::memcpy(&at_the_end, item.params.data() + kWideParams - sizeof at_the_end, sizeof at_the_end);
    return item.line.id ^ std::rotl(item.line.id ^ at_the_end, 7);
  }
};

// A copy of 1 MB that is never copied: each command carries a reference to it. Taking a reference is part of the push,
// dropping it part of the pop; the receiver reads both ends of the bytes in place.
class Large {
 public:
  using Item = CommandRecord;
  static constexpr std::size_t kBytes = 1 << 20;

  Large() : payload_(Payload::allocate(kBytes)) {
    const std::span<std::byte> bytes = payload_.writable();
    bytes.front() = bytes.back() = kSeal;
  }
  Item make() const noexcept {
    return make_copy(RecordKind::copy_to_device, 0,
                     {.buffer = 1, .offset_bytes = 0, .size_bytes = kBytes, .payload = 0});
  }
  void mark(Item& item, std::uint32_t number) const noexcept {
    item.id = number;
    item.copy.payload = payload_.clone().release();
  }
  std::uint32_t mark_of(const Item& item) const noexcept {
    const Payload payload = Payload::adopt(item.copy.payload);
    const std::span<const std::byte> bytes = payload.bytes();
    return item.id ^ std::to_integer<std::uint32_t>((bytes.front() ^ kSeal) | (bytes.back() ^ kSeal));
  }

 private:
  static constexpr std::byte kSeal{0x5e};
  Payload payload_;
};

// 64 bytes that leave no room for a channel's stamp: with it, they take two cache lines.
struct alignas(64) FullLine {
  std::array<std::uint64_t, 8> words;
};
struct TwoLines {
  using Item = FullLine;
  Item make() const noexcept { return {}; }
  void mark(Item& item, std::uint32_t number) const noexcept { item.words[0] = item.words[7] = number; }
  std::uint32_t mark_of(const Item& item) const noexcept {
    return static_cast<std::uint32_t>(item.words[0] ^ std::rotl(item.words[0] ^ item.words[7], 7));
  }
};

}  // namespace weir::channel_bench
