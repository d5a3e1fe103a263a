// Device body of adam.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <int N, class T>
__device__ inline void adam_run(const KernelArguments& a, long long index) {
  const auto gradients = run_at<N>(operand<const T>(a, 0), index);
  auto parameters = run_at<N>(operand<const float>(a, 1), index);
  auto means = run_at<N>(operand<const float>(a, 2), index), squares = run_at<N>(operand<const float>(a, 3), index);
  const float beta1 = a.scalars[1], beta2 = a.scalars[2];
#pragma unroll
  for (int e = 0; e < N; ++e) {
    const float gradient = load(gradients.elements + e);
    float& mean = means.elements[e];
    float& square = squares.elements[e];
    mean = beta1 * mean + (1 - beta1) * gradient;
    square = beta2 * square + (1 - beta2) * gradient * gradient;
    parameters.elements[e] -= a.scalars[0] * mean / (sqrtf(square) + a.scalars[3]);
  }
  run_at<N>(operand<float>(a, 1), index) = parameters;
  run_at<N>(operand<float>(a, 2), index) = means;
  run_at<N>(operand<float>(a, 3), index) = squares;
}

template <class T>
__device__ inline void adam(const KernelArguments& a) {
  const long long count = a.dims[0], first = global_thread(), stride = global_threads();
  const bool is_wide = count > stride && is_aligned<4>(operand<const T>(a, 0)) &&
                       is_aligned<4>(operand<const float>(a, 1)) && is_aligned<4>(operand<const float>(a, 2)) &&
                       is_aligned<4>(operand<const float>(a, 3));
  const long long wide = is_wide ? count / 4 : 0;
  for (long long i = first; i < wide; i += stride) adam_run<4, T>(a, i);
  for (long long i = 4 * wide + first; i < count; i += stride) adam_run<1, T>(a, i);
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(adam, 256)
