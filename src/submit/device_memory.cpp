#include "submit/device_memory.h"

namespace weir {

DeviceMemorySource::DeviceMemorySource(Device& device, Place place) : memory_(device.memory(place)) {}

MemoryKind DeviceMemorySource::kind() const noexcept {
  if (!memory_->is_host_accessible()) return MemoryKind::device;
  return memory_->is_pinned() ? MemoryKind::pinned : MemoryKind::host;
}

}  // namespace weir
