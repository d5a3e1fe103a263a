// debugfs kfd/hqds: every hardware slot of every GPU with the registers of the queue in it. Knows this one file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "amd/kfd/registers.h"
#include "amd/kfd/text.h"

namespace weir::kfd {

enum class SlotState : std::uint8_t {
  active,  // a queue is mapped here
  stale,   // ACTIVE is 0 and the values are of a queue that was here: it may be gone
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
  std::string generation_from;  // what that rests on
  std::vector<HqdSlot> hiqs;    // one per XCC: KFD's own queue to the scheduler firmware
  std::vector<HqdSlot> slots;
  std::vector<SdmaSlot> sdma;
  std::size_t left_out = 0, left_out_sdma = 0;  // slots that were printed and could not be read
  std::vector<int> xccs;                        // as they are numbered in the file
  bool has_instances = true;                    // kernels before 6.5 print none
  std::size_t slots_per_xcc() const noexcept { return xccs.empty() ? 0 : slots.size() / xccs.size(); }
};

struct HqdFile {
  std::string name;
  std::size_t bytes = 0, lines = 0;
  std::vector<HqdNode> nodes;
  std::vector<UnreadLines> unread;
  std::vector<std::string> problems;  // shapes that no kernel we know prints
};

// Whether the text begins as this file does.
bool looks_like_hqds(std::string_view text);
HqdFile parse_hqds(std::string_view text, const std::string& name);

}  // namespace weir::kfd
