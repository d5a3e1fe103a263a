// The device's side of moment.h: writes to memory that the host looks at while the kernel runs.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

__device__ inline long long probe_time_ns() { return static_cast<long long>(time_ns()); }

// The end comes last: who sees it sees the start too.
__device__ inline void write_ended(volatile long long* at, long long ns) {
  __threadfence_system();
  at[1] = ns;
  __threadfence_system();
}

}  // namespace weir::device
