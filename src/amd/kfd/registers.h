// Registers of one queue as the kernel dumps them: the 56 words of a compute queue (HQD), the same words within its
// memory image (MQD, at word 128), and those of an SDMA queue. Knows bits, but no file and no other queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::kfd {

enum class Generation : std::uint8_t { unknown, gfx9, gfx9_4_3, gfx10, gfx11, gfx12 };
std::string_view name_of(Generation generation);  // "gfx9", ..., "unknown"
// For example, 90402 from the topology -> gfx9_4_3.
Generation generation_of(std::uint32_t gfx_target_version);

inline constexpr std::size_t kQueueRegisters = 56;
inline constexpr std::size_t kMqdOffset = 128;  // words before the registers in a memory image
inline constexpr std::uint64_t kPacketDwords = 16;

struct Quantum {
  bool is_enabled = false;
  int scale = 0;     // the field; 1 means milliseconds (QUANTUM_SCALE_1MS)
  int duration = 0;  // in units of that scale
};

// Registers of a compute queue, decoded.
struct QueueImage {
  std::uint64_t mqd_base = 0;
  bool is_active = false;
  int vmid = 0;
  bool has_cwsr = false;      // PERSISTENT_STATE.QSWITCH_MODE
  bool is_restoring = false;  // RESTORE_ACTIVE
  int pipe_priority = 0, queue_priority = 0;
  Quantum quantum;
  std::uint64_t ring_base = 0, ring_dwords = 0;
  std::uint64_t read_dword = 0, write_dword = 0;
  std::uint32_t doorbell = 0;  // index in dwords
  bool is_doorbell_enabled = false, is_doorbell_hit = false, is_scheduler_hit = false;
  bool is_aql = false;
  bool is_marked_empty = false;  // PQ_CONTROL.PQ_EMPTY, set by the hardware; not in a memory image
  bool is_kernel_queue = false;
  int dequeue_request = 0;  // 0 none, 1 drain, 2 reset, 3 save
  std::uint32_t errors = 0;
  std::uint64_t save_base = 0, save_bytes = 0;
  std::uint32_t stack_offset = 0, stack_bytes = 0;  // control stack of the save area

  std::uint64_t ring_bytes() const noexcept { return ring_dwords * 4; }
  bool is_blank() const noexcept { return mqd_base == 0 && ring_base == 0 && read_dword == 0 && write_dword == 0; }
  // Written but not yet read. Nothing if a full ring and an empty one cannot be distinguished.
  std::optional<std::uint64_t> backlog_dwords() const noexcept;
  // Whether waves were saved in mid-kernel when it was last taken off the hardware; nothing if CWSR is off or the
  // control stack is larger than the kernel's own test accepts.
  std::optional<bool> was_preempted() const noexcept;
};

QueueImage decode_queue(std::span<const std::uint32_t, kQueueRegisters> words);

// Names of the bits that are set in CP_HQD_ERROR.
std::string error_names(std::uint32_t errors);

// A ring of an SDMA engine, decoded. Its pointers are in bytes.
struct SdmaImage {
  static constexpr std::size_t kWords = 24;  // only the first words; layouts differ from the eighth on
  std::array<std::uint32_t, kWords> words{};

  bool is_enabled = false;                  // RB_ENABLE: stays set after a queue is gone (MI308X, amdgpu 6.12.12)
  std::optional<bool> is_doorbell_enabled;  // set for a mapped queue; nothing if the layout is unknown
  int vmid = 0;
  std::uint64_t ring_base = 0, ring_bytes = 0;
  std::uint64_t read_byte = 0, write_byte = 0;
  std::optional<std::uint32_t> doorbell;  // index in dwords; nothing if the layout is unknown
  bool is_blank() const noexcept { return ring_base == 0 && read_byte == 0 && write_byte == 0; }
  std::optional<std::uint64_t> backlog_bytes() const noexcept;
};

// The layout of an SDMA dump follows from its number of registers; unknown for other numbers.
Generation sdma_layout(std::size_t registers) noexcept;

// Takes words of a dump or of a memory image; the order is the same. Nothing if there are fewer than 24.
std::optional<SdmaImage> decode_sdma(std::span<const std::uint32_t> words, Generation generation);
// The positions of DOORBELL and DOORBELL_OFFSET depend on the generation: fills them in once it is known.
void decode_sdma_doorbell(SdmaImage& image, Generation generation);

}  // namespace weir::kfd
