// When iterations started and ended on the device: a bounded ring of timing events around each stream's part. Knows
// events and the device's clock; not what is submitted between them.
#pragma once

#include <cstdint>
#include <vector>

#include "device/gpu/clock.h"

namespace weir {

class IterationEvents {
 public:
  // One pair of events per lane and iteration. A lane is a stream, or the only lane of a graph; 0 lanes mark nothing.
  IterationEvents(const GpuApi& api, DeviceClock& clock, std::size_t lanes);

  // Opens the next iteration; if the ring is full, waits for the oldest one and reads it first.
  void begin() noexcept;

  // Several threads may call the next two at once, each for its own lanes.
  int start(std::size_t lane, GpuStream stream) noexcept { return mark(first_ + 2 * lane, stream); }
  int end(std::size_t lane, GpuStream stream) noexcept { return mark(first_ + 2 * lane + 1, stream); }

  // All iterations since the last call, oldest first. Call while nothing runs.
  std::vector<IterationSpan> take();

 private:
  int mark(std::size_t index, GpuStream stream) noexcept {
    if (lanes_ == 0) return 0;
    is_marked_[index] = 1;
    return api_.event_record(handles_[index], stream);
  }
  void read_oldest() noexcept;

  const GpuApi& api_;
  DeviceClock& clock_;
  std::size_t lanes_;
  std::size_t slots_;
  std::vector<GpuEventOwner> events_;    // slot, lane, start and end
  std::vector<GpuEvent> handles_;        // the same handles, borrowed: 8 bytes apart
  std::vector<std::uint8_t> is_marked_;  // recorded in the slot's current iteration
  std::vector<std::uint32_t> base_;      // of the clock, by slot
  std::size_t first_ = 0;                // first event of the current slot
  std::uint64_t begun_ = 0, read_ = 0;   // iterations
  std::vector<IterationSpan> spans_;
};

}  // namespace weir
