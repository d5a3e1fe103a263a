// A command in a channel: a record of one cache line that can be copied as bytes. The first word of the line belongs to
// the channel: with the stamp in the same line, a command moves from core to core in one transfer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace weir {

enum class RecordKind : std::uint8_t { launch, copy_to_device, copy_from_device, synchronize };
constexpr std::string_view name_of(RecordKind kind) {
  constexpr std::string_view kNames[] = {"launch", "copy_to_device", "copy_from_device", "synchronize"};
  return kNames[static_cast<int>(kind)];
}

// Identifies the bytes of a copy: a slot of a pool or a reference-counted Payload. Ownership (of the slot, or of one
// reference) travels with the command; the bytes stay where they are. 0: none.
using PayloadHandle = std::uint64_t;

inline constexpr std::size_t kNarrowParams = 24;  // bytes of a launch's parameters that fit in its line
inline constexpr std::size_t kWideParams = 128;   // and in a wide record
inline constexpr std::uint16_t kAllStreams = UINT16_MAX;

// No device allows more than 65535 in y and z.
struct Grid {
  std::uint32_t x;
  std::uint16_t y, z;
};
struct Block {
  std::uint16_t x, y, z;
};

struct LaunchFields {
  std::uint32_t kernel;
  std::uint16_t params_bytes;
  Block block;
  Grid grid;
  std::uint32_t unused;
  std::array<std::byte, kNarrowParams> params;  // in a wide record they follow the line
};
struct CopyFields {
  std::uint64_t buffer;
  std::uint64_t offset_bytes, size_bytes;
  PayloadHandle payload;
};

struct alignas(64) CommandRecord {
  static constexpr bool kLeavesRoomForStamp = true;

  std::uint64_t stamp;  // used by the channel; users must not touch it
  RecordKind kind;
  std::uint8_t priority;  // for the priority channel: 0 is the most urgent
  std::uint16_t stream;   // kAllStreams: synchronize the whole device
  std::uint32_t id;       // chosen by the sender, to recognise the command
  union {
    LaunchFields launch;
    CopyFields copy;
  };
};
static_assert(sizeof(CommandRecord) == 64 && std::is_trivially_copyable_v<CommandRecord>);

// A command whose parameters need more than its line. Only the used lines are copied.
struct alignas(64) WideCommandRecord {
  static constexpr bool kLeavesRoomForStamp = true;

  CommandRecord line;
  std::array<std::byte, kWideParams> params;

  std::size_t used_bytes() const noexcept {
    return sizeof(CommandRecord) +
           (line.kind == RecordKind::launch ? std::min<std::size_t>(line.launch.params_bytes, kWideParams) : 0U);
  }
};
static_assert(sizeof(WideCommandRecord) == 192 && std::is_trivially_copyable_v<WideCommandRecord>);

inline CommandRecord make_synchronize(std::uint16_t stream, std::uint32_t id = 0) noexcept {
  CommandRecord record{};
  record.kind = RecordKind::synchronize;
  record.stream = stream;
  record.id = id;
  return record;
}

inline CommandRecord make_copy(RecordKind direction, std::uint16_t stream, const CopyFields& copy,
                               std::uint32_t id = 0) noexcept {
  CommandRecord record{};
  record.kind = direction;
  record.stream = stream;
  record.id = id;
  record.copy = copy;
  return record;
}

// `params` beyond kNarrowParams are cut off; use make_wide_launch() for such launches.
inline CommandRecord make_launch(std::uint16_t stream, std::uint32_t kernel, Grid grid, Block block,
                                 std::span<const std::byte> params = {}, std::uint32_t id = 0) noexcept {
  CommandRecord record{};
  record.kind = RecordKind::launch;
  record.stream = stream;
  record.id = id;
  record.launch.kernel = kernel;
  record.launch.grid = grid;
  record.launch.block = block;
  record.launch.params_bytes = static_cast<std::uint16_t>(std::min(params.size(), kNarrowParams));
  std::copy_n(params.begin(), record.launch.params_bytes, record.launch.params.begin());
  return record;
}

inline WideCommandRecord make_wide_launch(std::uint16_t stream, std::uint32_t kernel, Grid grid, Block block,
                                          std::span<const std::byte> params, std::uint32_t id = 0) noexcept {
  WideCommandRecord record;
  record.line = make_launch(stream, kernel, grid, block, {}, id);
  record.line.launch.params_bytes = static_cast<std::uint16_t>(std::min(params.size(), kWideParams));
  std::copy_n(params.begin(), record.line.launch.params_bytes, record.params.begin());
  return record;
}

}  // namespace weir
