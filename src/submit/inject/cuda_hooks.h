// Calls of the CUDA driver by functions of ours that a program gets in place of the driver's: what CUPTI's callbacks
// say, for a third of their cost, and beside any other profiler. Works where this library is preloaded (LD_PRELOAD).
#pragma once

#include <bitset>

#include "submit/inject/cupti_functions.h"

namespace weir::inject {

// Whether the program has our functions. False also where the driver is too old to name streams and kernels.
bool has_hooks() noexcept;
// Which functions report their calls to deliver_call() in cupti_subscription.h; the others cost a load and a jump.
void want_hooks(const std::bitset<kMaxCudaFunctions>& functions) noexcept;
// For a listener at the begin of a launch that is reported by a hook, in its thread: the driver gets these instead of
// the program's; null: as the program said. Where the driver refuses that, it gets the program's own after all.
void redirect_call(CUstream stream, CUgraphExec graph) noexcept;
// The driver's own numbers, or kNone.
std::uint32_t stream_id_by_driver(CUstream stream) noexcept;
std::uint32_t context_id_by_driver(CUcontext context) noexcept;
}  // namespace weir::inject
