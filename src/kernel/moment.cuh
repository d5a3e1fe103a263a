// The device's side of moment.h: writes to memory that the host reads while the kernel runs.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

__device__ inline long long probe_time_ns() { return static_cast<long long>(time_ns()); }

// A host that sees the end also sees the start. CUDA uses one store instead of a fence: waiting for host memory would
// make the kernel about a microsecond longer than it reports (H200, 2026-11), and its end makes everything visible.
__device__ inline void write_ended(volatile long long* at, long long started_ns, long long ended_ns) {
#if defined(__HIPCC__)
  at[0] = started_ns;
  __threadfence_system();
  at[1] = ended_ns;
#else
  asm volatile("st.volatile.global.v2.s64 [%0], {%1, %2};" ::"l"(at), "l"(started_ns), "l"(ended_ns) : "memory");
#endif
}

}  // namespace weir::device
