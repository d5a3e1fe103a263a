// A BLAS handle with its own workspace for every stream that multiplies matrices. Opens the library only if needed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "device/gpu/context.h"
#include "step/step.h"

namespace weir {

// True for a command that the vendor's BLAS runs.
bool is_gemm(const Command& command);

class StreamBlas {
 public:
  // Bytes that this step's workspaces will take; 0 without a gemm.
  static std::size_t workspace_bytes(const GpuFacts& facts, const Step& step, const Placement& placement);

  StreamBlas(PrimaryContext& context, const GpuFacts& facts, const Step& step, const Placement& placement,
             std::span<const GpuStream> streams);

  // Null for a stream without a gemm.
  GpuBlasHandle handle(StreamId stream) const noexcept { return handles_[stream].get(); }
  const GpuBlas* blas() const noexcept { return blas_; }

 private:
  struct Close {
    const GpuBlas* blas = nullptr;
    void operator()(GpuBlasHandle handle) const noexcept { blas->destroy(handle); }
  };

  const GpuBlas* blas_ = nullptr;
  std::vector<GpuMemoryOwner> workspaces_;
  std::vector<Handle<GpuBlasHandle, Close>> handles_;  // by stream; destroyed before the members that they use
};

}  // namespace weir
