// Device body of spin. Times are subtracted as integers: as floats they would lose microseconds.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

__device__ inline void spin(const KernelArguments& a) {
  if (threadIdx.x != 0 || blockIdx.x >= a.dims[1]) return;
  const auto duration_ns = static_cast<unsigned long long>(a.dims[0] > 0 ? a.dims[0] : 0);
  const unsigned long long started_ns = time_ns();
  while (time_ns() - started_ns < duration_ns) {
  }
  operand<float>(a, 0)[blockIdx.x] = 1.0f;
}

}  // namespace weir::device

extern "C" __global__ void __launch_bounds__(32) weir_spin_f32(const weir::KernelArguments a) { weir::device::spin(a); }
