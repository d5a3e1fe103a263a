// Memory that the host and running kernels use at the same time: how to allocate it, and a trial that shows whether it
// works. Knows a context; no step.
#pragma once

#include "device/opencl/context.h"

#if WEIR_HAVE_OPENCL
#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

// Host memory with a buffer object over it for kernels. Movable, not copyable.
class OpenclHostMemory {
 public:
  OpenclHostMemory() = default;
  // `sharing` none: only for copies and the host, so there is no buffer object.
  OpenclHostMemory(const OpenclContext& context, OpenclSharing sharing, std::size_t bytes);
  OpenclHostMemory(OpenclHostMemory&& other) noexcept;
  OpenclHostMemory& operator=(OpenclHostMemory&& other) noexcept;
  ~OpenclHostMemory() { release(); }

  std::byte* data() const noexcept { return data_; }
  cl_mem buffer() const noexcept { return sharing_ == OpenclSharing::none ? nullptr : buffer_.get(); }

 private:
  void release() noexcept;

  const OpenclContext* context_ = nullptr;
  OpenclSharing sharing_ = OpenclSharing::none;
  std::byte* data_ = nullptr;
  OpenclMemoryOwner buffer_;
  OpenclQueueOwner queue_;  // that mapped it
};

// Source of the kernel `weir_trial`, which try_sharing() runs.
extern const std::string_view kSharingTrial;

// The first method by which a running kernel sees the host's writes, and the host the kernel's. Takes milliseconds.
// `reason` explains the failure if there is none.
OpenclSharing try_sharing(const OpenclContext& context, cl_program program, std::string* reason);

}  // namespace weir
#endif
