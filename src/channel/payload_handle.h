// The contents of a PayloadHandle: the address of a record, its kind, and in checked builds the record's generation
// when the handle was made. Knows neither pool nor payload.
#pragma once

#include <bit>
#include <cstdint>

#include "channel/command_record.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_HAS_ASAN 1
#endif
#endif
#if !defined(WEIR_HAS_ASAN)
#if defined(__SANITIZE_ADDRESS__)
#define WEIR_HAS_ASAN 1
#else
#define WEIR_HAS_ASAN 0
#endif
#endif

namespace weir {

inline constexpr bool kHasAsan = WEIR_HAS_ASAN != 0;
// Double frees and uses after release end the program with a message. Not in release builds: the check writes to a
// slot's record with every allocation and every free, and that line would move from core to core.
#if defined(NDEBUG)
inline constexpr bool kChecksMemory = kHasAsan;
#else
inline constexpr bool kChecksMemory = true;
#endif

enum class HandleKind : std::uint8_t {
  none,
  slot,     // a slot of a pool, owned by the handle
  payload,  // one reference to a Payload
};

// Records are aligned to 64 bytes and lie below 2^48, like all memory that Linux gives to a program that does not
// request more: the lowest bits have room for the kind, the highest for the generation and the size (an index of
// slot_bins).
namespace payload_handle {

inline constexpr std::uint64_t kKindMask = 3;
inline constexpr int kAddressBits = 48;
inline constexpr int kBinShift = 57;  // 7 bits
inline constexpr std::uint32_t kGenerationMask = 0x1ff;
inline constexpr std::uint64_t kAddressMask = ((std::uint64_t{1} << kAddressBits) - 1) & ~kKindMask;

inline PayloadHandle make(HandleKind kind, const void* record, std::uint32_t bin, std::uint32_t generation) noexcept {
  return std::bit_cast<std::uint64_t>(record) | static_cast<std::uint64_t>(kind) |
         static_cast<std::uint64_t>(generation & kGenerationMask) << kAddressBits |
         static_cast<std::uint64_t>(bin) << kBinShift;
}
template <class Record>
Record* record(PayloadHandle handle) noexcept {
  return std::bit_cast<Record*>(handle & kAddressMask);
}
inline std::uint32_t generation(PayloadHandle handle) noexcept {
  return static_cast<std::uint32_t>(handle >> kAddressBits) & kGenerationMask;
}
inline std::uint32_t bin(PayloadHandle handle) noexcept { return static_cast<std::uint32_t>(handle >> kBinShift); }
// The same slot with another kind.
inline PayloadHandle as(HandleKind kind, PayloadHandle handle) noexcept {
  return (handle & ~kKindMask) | static_cast<std::uint64_t>(kind);
}

}  // namespace payload_handle

inline HandleKind kind_of(PayloadHandle handle) noexcept {
  return static_cast<HandleKind>(handle & payload_handle::kKindMask);
}

}  // namespace weir
