// Two producers record the same event; the second record replaces the first, so the consumer waits for one of them.
// Like https://github.com/NVIDIA/Megatron-LM/pull/3140, where an event that is recorded on the wrong stream stands for
// a copy of another one.
#include "racing.cuh"

// edge: produce@side -> accumulate@main, missing: wait_event

__global__ void make_bias(float* to, int step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = static_cast<float>(i % 13 + 2 * step);
}

int main(int argc, char** argv) {
  const bool fixed = is_fixed(argc, argv);
  const cudaStream_t compute = new_stream(), first = new_stream(), second = new_stream();
  const cudaEvent_t ready = new_event(), other = new_event();
  float *x = new_floats(), *bias = new_floats(), *sum = new_floats();
  run([&](int step) {
    wait_stream(first, compute);
    wait_stream(second, compute);
    produce<<<kGrid, kBlock, 0, first>>>(x, step);
    CHECK(cudaEventRecord(fixed ? other : ready, first));
    make_bias<<<kGrid, kBlock, 0, second>>>(bias, step);
    CHECK(cudaEventRecord(ready, second));
    work<<<1, 1, 0, compute>>>(kGapNs);
    CHECK(cudaStreamWaitEvent(compute, ready, 0));
    if (fixed) CHECK(cudaStreamWaitEvent(compute, other, 0));
    accumulate<<<kGrid, kBlock, 0, compute>>>(sum, bias);
    accumulate<<<kGrid, kBlock, 0, compute>>>(sum, x);
    wait_stream(compute, first);
  });
  return print_digest(sum);
}
