#include "amd/kfd/registers.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::kfd {
namespace {

// Positions of registers in the dump; the same on gfx9, 9.4.3, 10, 11 and 12 (gfx12 has nothing at 26).
enum Register : std::size_t {
  kMqdBase = 0,
  kMqdBaseHigh = 1,
  kActive = 2,
  kVmid = 3,
  kPersistentState = 4,
  kPipePriority = 5,
  kQueuePriority = 6,
  kQuantum = 7,
  kRingBase = 8,
  kRingBaseHigh = 9,
  kReadPointer = 10,
  kDoorbellControl = 15,
  kRingControl = 17,
  kDequeueRequest = 24,
  kSaveBase = 43,
  kSaveBaseHigh = 44,
  kStackOffset = 46,
  kStackSize = 47,
  kSaveSize = 49,
  kError = 51,
  kAqlControl = 53,
  kWritePointer = 54,
  kWritePointerHigh = 55,
};

// The kernel's own test accepts no larger stack. KFD still allocates larger ones on chips with many CUs (96 on gfx11:
// 0xa000), so above this limit there is no answer.
constexpr std::uint32_t kLargestStack = 0x5000;

std::uint64_t join(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }
bool has(std::uint32_t word, std::uint32_t bits) { return (word & bits) != 0; }

}  // namespace

std::string_view name_of(Generation generation) {
  constexpr std::string_view kNames[] = {"unknown", "gfx9", "gfx9.4.3", "gfx10", "gfx11", "gfx12"};
  return kNames[static_cast<std::size_t>(generation)];
}

Generation generation_of(std::uint32_t gfx_target_version) {
  const std::uint32_t major = gfx_target_version / 10000, minor = gfx_target_version / 100 % 100;
  // gfx_target_version is the compiler's name for the chip: gfx942 and gfx950 have the registers of GC 9.4.3.
  const std::uint32_t step = gfx_target_version % 100;
  if (major == 9) return (minor == 4 && step <= 2) || minor == 5 ? Generation::gfx9_4_3 : Generation::gfx9;
  constexpr Generation kOthers[] = {Generation::gfx10, Generation::gfx11, Generation::gfx12};
  return major >= 10 && major <= 12 ? kOthers[major - 10] : Generation::unknown;
}

QueueImage decode_queue(std::span<const std::uint32_t, kQueueRegisters> words) {
  QueueImage image;
  image.mqd_base = join(words[kMqdBaseHigh], words[kMqdBase]);
  image.is_active = has(words[kActive], 1);
  image.vmid = static_cast<int>(words[kVmid] & 0xf);
  image.has_cwsr = has(words[kPersistentState], 0x40000000);
  image.is_restoring = has(words[kPersistentState], 0x10000000);
  image.pipe_priority = static_cast<int>(words[kPipePriority] & 0x3);
  image.queue_priority = static_cast<int>(words[kQueuePriority] & 0xf);
  image.quantum.is_enabled = has(words[kQuantum], 1);
  image.quantum.scale = static_cast<int>(words[kQuantum] >> 4 & 1);
  image.quantum.duration = static_cast<int>(words[kQuantum] >> 8 & 0x3f);
  // The base is in units of 256 bytes, 40 bits of them at most.
  image.ring_base = (join(words[kRingBaseHigh], words[kRingBase]) & 0xff'ffff'ffff) << 8;
  // QUEUE_SIZE has six bits, but the largest value, 2^64 dwords, is not a valid size.
  const std::uint32_t size = words[kRingControl] & 0x3f;
  image.ring_dwords = size < 40 ? std::uint64_t{1} << (size + 1) : 0;
  image.is_marked_empty = has(words[kRingControl], 0x8000);
  image.is_kernel_queue = has(words[kRingControl], 0x80000000);
  image.is_aql = (words[kRingControl] >> 25 & 3) == 2 || words[kAqlControl] != 0;
  image.read_dword = words[kReadPointer];
  image.write_dword = join(words[kWritePointerHigh], words[kWritePointer]);
  image.doorbell = (words[kDoorbellControl] & 0x0ffffffc) >> 2;
  image.is_scheduler_hit = has(words[kDoorbellControl], 0x20000000);
  image.is_doorbell_enabled = has(words[kDoorbellControl], 0x40000000);
  image.is_doorbell_hit = has(words[kDoorbellControl], 0x80000000);
  image.dequeue_request = static_cast<int>(words[kDequeueRequest] & 7);
  image.errors = words[kError];
  image.save_base = join(words[kSaveBaseHigh], words[kSaveBase]);
  image.save_bytes = words[kSaveSize] & 0x07fff000;
  image.stack_offset = words[kStackOffset];
  image.stack_bytes = words[kStackSize];
  return image;
}

std::optional<std::uint64_t> QueueImage::backlog_dwords() const noexcept {
  if (ring_dwords == 0) return std::nullopt;
  // The read pointer wraps within the ring, the write pointer does not: HIQ with 0xfb and 0x8fb in 512 dwords is empty.
  const std::uint64_t backlog = (write_dword - read_dword) & (ring_dwords - 1);
  if (backlog != 0) return backlog;
  // Equal in all bits: a pointer cannot be exactly one ring ahead of itself.
  const bool is_same = read_dword == write_dword;
  // A full AQL ring has the same remainder as an empty one. PM4 rings are never completely full.
  if (is_same || is_marked_empty || !is_aql) return 0;
  return std::nullopt;
}

std::optional<bool> QueueImage::was_preempted() const noexcept {
  if (!has_cwsr) return std::nullopt;
  if (read_dword == 0 && write_dword == 0) return false;
  if (stack_offset == 0xffffffff || stack_offset == stack_bytes) return false;
  if (stack_bytes > kLargestStack) return std::nullopt;
  return true;
}

std::string error_names(std::uint32_t errors) {
  // ERROR{EDC 0xF, SUA 0x10, AQL 0x20, *_UTCL1 0x100..0x80000}
  std::string names;
  const auto add = [&](std::uint32_t bits, const char* name) {
    if (has(errors, bits)) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add(0xf, "EDC (memory)");
  add(0x10, "SUA");
  add(0x20, "AQL packet");
  add(0xfff00, "address translation");
  if (const std::uint32_t rest = errors & ~0xfff3fu; rest != 0)
    names += fmt::format("{}bits 0x{:x}", names.empty() ? "" : ", ", rest);
  return names;
}

std::optional<std::uint64_t> SdmaImage::backlog_bytes() const noexcept {
  if (ring_bytes == 0) return std::nullopt;
  return (write_byte - read_byte) & (ring_bytes - 1);
}

Generation sdma_layout(std::size_t registers) noexcept {
  if (registers == 42 || registers == 44) return Generation::gfx9;  // 42: gfx9 and gfx10; 44: gfx9.4.3
  return registers == 43 ? Generation::gfx11 : registers == 49 ? Generation::gfx12 : Generation::unknown;
}

std::optional<SdmaImage> decode_sdma(std::span<const std::uint32_t> words, Generation generation) {
  if (words.size() < SdmaImage::kWords) return std::nullopt;
  SdmaImage image;
  std::copy_n(words.begin(), SdmaImage::kWords, image.words.begin());
  // RB_CNTL{ENABLE 0x1, SIZE 0x3e, VMID 0xf000000}, RB_BASE lo/hi, RB_RPTR lo/hi, RB_WPTR lo/hi come first everywhere.
  image.is_enabled = has(words[0], 1);
  image.vmid = static_cast<int>(words[0] >> 24 & 0xf);
  const std::uint32_t size = words[0] >> 1 & 0x1f;
  image.ring_bytes = size == 0 ? 0 : std::uint64_t{4} << size;
  image.ring_base = (join(words[2], words[1]) & 0xff'ffff'ffff) << 8;
  image.read_byte = join(words[4], words[3]);
  image.write_byte = join(words[6], words[5]);
  decode_sdma_doorbell(image, generation);
  return image;
}

void decode_sdma_doorbell(SdmaImage& image, Generation generation) {
  if (generation == Generation::unknown) return;
  std::size_t doorbell = 18, offset = 22;  // gfx9 and gfx10
  if (generation == Generation::gfx11) doorbell = 17, offset = 19;
  if (generation == Generation::gfx12) doorbell = 15, offset = 17;
  image.is_doorbell_enabled = has(image.words[doorbell], 0x10000000);
  image.doorbell = (image.words[offset] & 0x0ffffffc) >> 2;
}

}  // namespace weir::kfd
