// A step's buffers on a GPU: device and pinned host memory, initial contents, reading back. Knows no command.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "device/gpu/context.h"
#include "step/step.h"

namespace weir {

class GpuBuffers {
 public:
  // `workspace_bytes` is what the session will need besides. Rejects buffers that do not fit, with the missing amount.
  GpuBuffers(PrimaryContext& context, const Step& step, std::size_t workspace_bytes);

  // The address on the device; pinned host memory has the same address on both sides.
  std::byte* address(BufferId id) const noexcept { return addresses_[id]; }

  // Sets every buffer to its initial contents, bit for bit as initialise() does, and waits.
  void initialise(GpuStream stream);
  void read(BufferId id, std::span<std::byte> bytes, GpuStream stream) const;

 private:
  void initialise_on_device(const Buffer& buffer, std::byte* address, GpuStream stream);

  PrimaryContext& context_;
  const Step& step_;
  std::vector<GpuMemoryOwner> device_;
  std::vector<GpuHostMemoryOwner> host_;
  std::vector<std::byte*> addresses_;
};

}  // namespace weir
