// What names tell: which kernels are collectives or copies, what a call of the driver does; and the words for kinds.
// Knows no file format.
#pragma once

#include <string_view>

#include "measure/timeline.h"

namespace weir {

// Whether a kernel of this name is a collective's (NCCL, RCCL, oneCCL ...), and which.
bool is_collective_name(std::string_view name) noexcept;
CollectiveKind collective_kind_of(std::string_view name);
// What a kernel of this name is: a collective, a copy or a memset that a runtime makes with kernels of its own, else a
// kernel.
SpanKind kernel_kind_of(std::string_view name) noexcept;
const char* to_string(CollectiveKind kind) noexcept;
const char* to_string(SpanKind kind) noexcept;
// What a driver's function does, by its name: cudaLaunchKernel, cuMemcpyAsync, hipStreamWaitEvent ...
CallKind call_kind_of(std::string_view name) noexcept;
// Whether it waits for all streams: cudaDeviceSynchronize, cuCtxSynchronize.
bool waits_for_everything(std::string_view name) noexcept;

}  // namespace weir
