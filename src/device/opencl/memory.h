// A step's buffers on an OpenCL device: device and host memory, initial contents, reading back. Knows no command.
#pragma once

#include "device/opencl/sharing.h"

#if WEIR_HAVE_OPENCL
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "step/step.h"

namespace weir {

// Memory outside of sessions, for Device::memory(); null if the device shares none, so that plain host memory must do.
std::unique_ptr<DeviceMemory> make_opencl_memory(std::shared_ptr<OpenclContext> context);

class OpenclBuffers {
 public:
  // Rejects buffers that do not fit, with the missing amount.
  OpenclBuffers(OpenclContext& context, const Step& step);

  // The kernel argument; null for host memory that the device cannot reach.
  cl_mem memory(BufferId id) const noexcept { return memory_[id]; }
  // Null for device memory.
  std::byte* host(BufferId id) const noexcept { return host_address_[id]; }

  // Sets every buffer to its initial contents, bit for bit as initialise() does, and waits.
  void initialise(cl_command_queue queue);
  void read(BufferId id, std::span<std::byte> bytes, cl_command_queue queue) const;

 private:
  void initialise_on_device(const Buffer& buffer, cl_mem memory, cl_command_queue queue);

  OpenclContext& context_;
  const Step& step_;
  std::vector<OpenclMemoryOwner> device_;
  std::vector<OpenclHostMemory> host_;
  std::vector<cl_mem> memory_;            // by buffer
  std::vector<std::byte*> host_address_;  // by buffer
};

}  // namespace weir
#endif
