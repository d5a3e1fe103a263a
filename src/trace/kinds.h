// What names reveal: which kernels are collectives or copies, and what a driver call does; also the names of kinds.
// Knows no file format.
#pragma once

#include <string_view>

#include "measure/timeline.h"

namespace weir {

// Whether a kernel of this name belongs to a collective (NCCL, RCCL, oneCCL ...), and to which kind.
bool is_collective_name(std::string_view name) noexcept;
CollectiveKind collective_kind_of(std::string_view name);
// The kind of a kernel of this name: a collective, a copy or memset that a runtime does with its own kernels, or else a
// kernel.
SpanKind kernel_kind_of(std::string_view name) noexcept;
const char* to_string(CollectiveKind kind) noexcept;
const char* to_string(SpanKind kind) noexcept;
// What a driver function does, by its name: cudaLaunchKernel, cuMemcpyAsync, hipStreamWaitEvent ...
CallKind call_kind_of(std::string_view name) noexcept;
// Whether it waits for all streams: cudaDeviceSynchronize, cuCtxSynchronize.
bool waits_for_everything(std::string_view name) noexcept;

}  // namespace weir
