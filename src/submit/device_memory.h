// A device's memory, or pinned memory that it reaches, as the source of a memory pool.
#pragma once

#include <memory>

#include "channel/memory_source.h"
#include "device/device.h"

namespace weir {

class DeviceMemorySource final : public MemorySource {
 public:
  // `place` as in Device::memory(). The device may be destroyed before the source.
  DeviceMemorySource(Device& device, Place place);

  // The actual kind of the memory: a device without its own memory returns the host's.
  MemoryKind kind() const noexcept override;
  bool is_host_accessible() const noexcept override { return memory_->is_host_accessible(); }
  std::byte* allocate(std::size_t bytes) noexcept override { return memory_->allocate(bytes); }
  void release(std::byte* memory, std::size_t) noexcept override { memory_->release(memory); }

  // For copies into and out of slots that the host cannot touch.
  DeviceMemory& memory() noexcept { return *memory_; }

 private:
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace weir
