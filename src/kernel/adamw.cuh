// Device body of adamw.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

// Values common to all elements; state is {number of this step, clip factor, learning rate}. 1 - beta^step is computed
// as -expm1(step log beta): the plain difference loses three digits if beta is 0.999 and the step is the first.
struct AdamwRates {
  __device__ explicit AdamwRates(const KernelArguments& a) {
    const float* const state = static_cast<const float*>(a.operands[4]);
    clip = state[1];
    beta1 = a.scalars[0];
    beta2 = a.scalars[1];
    epsilon = a.scalars[2];
    kept = 1 - state[2] * a.scalars[3];
    rate = state[2] / -expm1f(state[0] * logf(beta1));
    correction = 1 / sqrtf(-expm1f(state[0] * logf(beta2)));
  }
  float clip, beta1, beta2, epsilon, kept, rate, correction;
};

template <int N, class T>
__device__ inline void adamw_run(const KernelArguments& a, const AdamwRates& rates, long long index) {
  const auto gradients = run_at<N>(operand<const T>(a, 0), index);
  auto parameters = run_at<N>(operand<const float>(a, 1), index);
  auto means = run_at<N>(operand<const float>(a, 2), index), squares = run_at<N>(operand<const float>(a, 3), index);
  Run<T, N> low;
#pragma unroll
  for (int e = 0; e < N; ++e) {
    const float gradient = rates.clip * load(gradients.elements + e);
    float& mean = means.elements[e];
    float& square = squares.elements[e];
    float& parameter = parameters.elements[e];
    mean = rates.beta1 * mean + (1 - rates.beta1) * gradient;
    square = rates.beta2 * square + (1 - rates.beta2) * gradient * gradient;
    parameter = rates.kept * parameter - rates.rate * mean / (sqrtf(square) * rates.correction + rates.epsilon);
    store(low.elements + e, parameter);
  }
  run_at<N>(operand<float>(a, 1), index) = parameters;
  run_at<N>(operand<float>(a, 2), index) = means;
  run_at<N>(operand<float>(a, 3), index) = squares;
  run_at<N>(operand<T>(a, 5), index) = low;
}

template <class T>
__device__ inline void adamw(const KernelArguments& a) {
  const AdamwRates rates(a);
  const long long count = a.dims[0], first = global_thread(), stride = global_threads();
  const bool is_wide = count > stride && is_aligned<4>(operand<const T>(a, 0)) &&
                       is_aligned<4>(operand<const float>(a, 1)) && is_aligned<4>(operand<const float>(a, 2)) &&
                       is_aligned<4>(operand<const float>(a, 3)) && is_aligned<4>(operand<const T>(a, 5));
  const long long wide = is_wide ? count / 4 : 0;
  for (long long i = first; i < wide; i += stride) adamw_run<4, T>(a, rates, i);
  for (long long i = 4 * wide + first; i < count; i += stride) adamw_run<1, T>(a, rates, i);
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(adamw, 256)
