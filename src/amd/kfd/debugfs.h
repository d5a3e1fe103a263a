// The contents of KFD's debugfs files, one structure per file. Knows each of the three files by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/kfd/registers.h"
#include "amd/kfd/text.h"

namespace weir::kfd {

struct DebugfsFile {
  std::string name;
  std::size_t bytes = 0, lines = 0;
  std::vector<UnreadLines> unread;
  std::vector<std::string> problems;  // forms that no known kernel prints
};

// kfd/hqds: every hardware slot of every GPU with the registers of the queue in it.
enum class SlotState : std::uint8_t {
  active,  // a queue is mapped here
  stale,   // ACTIVE is 0, and the values are from an earlier queue, which may be gone
  unused,  // no queue was ever here
};

struct HqdSlot {
  int xcc = 0, pipe = 0, queue = 0;
  int mec = 1;
  SlotState state = SlotState::unused;
  std::uint32_t address = 0;  // of the first register
  std::size_t line = 0;       // of its heading
  QueueImage image;
};

struct SdmaSlot {
  int engine = 0, rlc = 0;
  SlotState state = SlotState::unused;
  std::size_t line = 0;
  std::size_t registers = 0;
  SdmaImage image;
};

struct HqdNode {
  int node = 0;
  std::uint32_t gpu_id = 0;
  bool is_stopped = false;
  Generation generation = Generation::unknown;
  std::string generation_from;  // what the generation was derived from
  std::vector<HqdSlot> hiqs;    // one per XCC: KFD's own queue to the scheduler firmware
  std::vector<HqdSlot> slots;
  std::vector<SdmaSlot> sdma;
  std::size_t left_out = 0, left_out_sdma = 0;  // slots that were printed but could not be read
  std::vector<int> xccs;                        // numbered as in the file
  bool has_instances = true;                    // false: kernels before 6.5 print no instance
  std::size_t slots_per_xcc() const noexcept { return xccs.empty() ? 0 : slots.size() / xccs.size(); }
};

struct HqdFile : DebugfsFile {
  std::vector<HqdNode> nodes;
};

// kfd/mqds: the memory images of every process's queues.

// The image of a compute queue on one XCC.
struct MqdImage {
  QueueImage queue;
  std::optional<std::uint64_t> save_ticks, restore_ticks;  // in GPU clock ticks; nothing if none was recorded
};

enum class MqdKind : std::uint8_t { compute, sdma, diq, other };

struct MqdQueue {
  MqdKind kind = MqdKind::compute;
  std::uint32_t gpu_id = 0;
  std::size_t line = 0;           // of its heading
  std::vector<MqdImage> images;   // compute: one per XCC
  std::optional<SdmaImage> sdma;  // its first image
};

struct MqdProcess {
  int pid = 0;
  std::uint32_t pasid = 0;
  bool is_pasid_real = false;    // false: newer kernels print the pid again instead
  std::vector<MqdQueue> queues;  // newest first, KFD's order
};

struct MqdFile : DebugfsFile {
  std::vector<MqdProcess> processes;
};

// kfd/rls: the run list of each GPU, as packets for the scheduler firmware.

struct RunlistQueue {
  int engine = 0;              // 0 compute, 2 and 3 SDMA
  int queue_type = 0;          // 0 normal, 1 debug, 2 and 3 static
  std::uint32_t doorbell = 0;  // index in dwords
  std::uint64_t mqd_base = 0;
};

struct RunlistProcess {
  std::uint32_t pasid = 0;
  int quantum = 0;          // as the driver writes it: 10
  int promised_queues = 0;  // num_queues of MAP_PROCESS
  std::vector<RunlistQueue> queues;
};

struct Runlist {
  int node = 0;
  std::uint32_t gpu_id = 0;
  bool is_there = false;    // false: "No active runlist"
  bool is_chained = false;  // ends with a RUN_LIST that points to its start: more queues than fit at once
  bool is_whole = true;     // false: part of it was not understood, which may have included a chain
  std::vector<RunlistProcess> processes;
  std::size_t other_packets = 0;
  std::size_t broken_promises = 0;  // processes whose packet announced a different number of queues
};

struct RunlistFile : DebugfsFile {
  std::vector<Runlist> lists;
};

// Whether the text begins like this file.
bool looks_like_hqds(std::string_view text);
bool looks_like_mqds(std::string_view text);
bool looks_like_rls(std::string_view text);
HqdFile parse_hqds(std::string_view text, const std::string& name);
MqdFile parse_mqds(std::string_view text, const std::string& name);
RunlistFile parse_rls(std::string_view text, const std::string& name);

}  // namespace weir::kfd
