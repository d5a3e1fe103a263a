// The makeup of a victim on a device: how many blocks fill it, how much memory a block must read to last as long as it
// should, and the buffers of its kernel. Runs its own trials; knows no intruder.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "lab/preempt/experiment.h"

namespace weir::preempt {

struct VictimSize {
  std::uint32_t blocks_at_once = 1;
  std::int64_t waves = 1;
  std::int64_t amount = 0;        // of a unit: ns, or words of 16 bytes
  std::int64_t memory_words = 0;  // in words of 16 bytes, which units read one after the other; 0: none
  std::int64_t units() const { return waves * blocks_at_once; }
};
// By trial if the device does not report its capacity. Takes a moment for memory victims.
VictimSize size_victim(Device& device, const Victim& victim);

struct VictimBuffers {
  BufferId flag = 0, records = 0, state = 0, done = 0, memory = 0;
};
// `flag`: its first element, in host memory. `is_virtual`: such a device keeps only the host's buffers.
VictimBuffers add_victim_buffers(StepBuilder& builder, BufferId flag, const VictimSize& size, std::uint32_t slots,
                                 bool is_virtual);
// `takes_units`: as many blocks as fit take unit after unit. `is_stoppable`: the same, and they check the flag in
// between.
CommandId add_victim(StepBuilder& builder, Lane lane, const VictimSize& size, const VictimBuffers& buffers,
                     std::uint32_t slot, bool takes_units, bool is_stoppable);

}  // namespace weir::preempt
