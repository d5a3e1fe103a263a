// A device's memory, or pinned memory that it reaches, as the source of a memory pool.
#pragma once

#include <memory>

#include "channel/memory_source.h"
#include "device/device.h"

namespace weir {

class DeviceMemorySource final : public MemorySource {
 public:
  // `place` as of Device::memory(). The device may go before the source.
  DeviceMemorySource(Device& device, Place place);

  // What the memory really is: a device without any of its own gives the host's.
  MemoryKind kind() const noexcept override;
  bool is_host_accessible() const noexcept override { return memory_->is_host_accessible(); }
  std::byte* allocate(std::size_t bytes) noexcept override { return memory_->allocate(bytes); }
  void release(std::byte* memory, std::size_t) noexcept override { memory_->release(memory); }

  // To copy into slots that the host cannot touch, and out of them.
  DeviceMemory& memory() noexcept { return *memory_; }

 private:
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace weir
