// Resident kernels of the cpu device and the order in which workers take their blocks: by priority, then by age. Knows
// slots and block numbers; runs nothing.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "step/command.h"

namespace weir::cpu {

struct PreparedStep;

inline constexpr int kLowestPriority = -1;
inline constexpr int kHighestPriority = 2;
inline constexpr std::uint32_t kLevels = kHighestPriority - kLowestPriority + 1;

constexpr std::uint8_t level_of(int priority) {
  return static_cast<std::uint8_t>(std::clamp(priority, kLowestPriority, kHighestPriority) - kLowestPriority);
}

// A command from its launch to its end. Plain fields are written before publish() and read after claim().
struct Resident {
  PreparedStep* step = nullptr;
  CommandId command = 0;
  std::uint32_t iteration = 0;
  std::uint32_t blocks = 0;
  int queue = 0;
  std::atomic<std::uint32_t> unended{0};  // blocks; the worker that brings it to 0 ends the command
  std::atomic<bool> has_scales{false};    // of a product in fp8: its first block has found them
};

class BlockPool {
 public:
  static constexpr std::uint32_t kSlots = 128;  // as many kernels as an H200 keeps resident
  static constexpr std::uint32_t kNoSlot = kSlots;

  struct Claim {
    std::uint32_t slot = 0;
    std::uint32_t block = 0;
  };

  // Returns a free slot, or kNoSlot.
  std::uint32_t acquire() noexcept;
  // Offers `blocks` blocks of a filled slot to the workers.
  void publish(std::uint32_t slot, std::uint32_t level, std::uint32_t blocks) noexcept;
  // Takes the next block of the most urgent kernel, the oldest among equals. False if there is none.
  bool claim(Claim& claim) noexcept;
  bool has_blocks() const noexcept;
  // Releases a slot; its last block must have ended.
  void release(std::uint32_t slot) noexcept;

  Resident& operator[](std::uint32_t slot) noexcept { return slots_[slot]; }

 private:
  // One word holds all that a claim needs, so a worker that is delayed between reading and claiming either fails or
  // takes an existing block: | lap 24 | slot 8 | unclaimed blocks 32 |.
  static constexpr std::uint64_t kCells = 2 * kSlots;  // only the head may be exhausted, so the ring never overflows
  static constexpr std::uint64_t word_of(std::uint64_t lap, std::uint32_t slot, std::uint32_t blocks) {
    return lap << 40 | static_cast<std::uint64_t>(slot) << 32 | blocks;
  }
  static constexpr std::uint64_t lap_in(std::uint64_t word) { return word >> 40; }
  static constexpr std::uint32_t slot_in(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32) & 0xff; }
  static constexpr std::uint32_t blocks_in(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
  // Counts from 1, so that an unused cell belongs to no lap.
  static constexpr std::uint64_t lap_of(std::uint64_t position) { return (position / kCells + 1) & 0xffffff; }

  // Kernels of one priority in launch order.
  struct Level {
    alignas(64) std::atomic<std::uint64_t> head{0};
    alignas(64) std::atomic<std::uint64_t> tail{0};
    alignas(64) std::array<std::atomic<std::uint64_t>, kCells> cells{};
  };

  std::array<Level, kLevels> levels_;
  std::array<Resident, kSlots> slots_;
  alignas(64) std::array<std::atomic<std::uint64_t>, kSlots / 64> used_{};
};

}  // namespace weir::cpu
