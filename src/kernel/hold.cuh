// Device body of hold.
#pragma once

#include "kernel/moment.cuh"

namespace weir::device {

__device__ inline void hold(const KernelArguments& a) {
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  const volatile int* const flag = operand<int>(a, 0);
  volatile long long* const at = operand<long long>(a, 1);
  const long long started_ns = probe_time_ns();
  at[0] = started_ns;
  __threadfence_system();
  while (*flag == 0 && probe_time_ns() - started_ns < a.dims[0]) {
  }
  write_ended(at, started_ns, probe_time_ns());
}

}  // namespace weir::device

extern "C" __global__ void __launch_bounds__(32) weir_hold_i32(const weir::KernelArguments a) { weir::device::hold(a); }
