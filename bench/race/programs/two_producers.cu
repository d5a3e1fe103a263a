// Two streams fill the halves of a buffer; the consumer waits for one of them. Like
// https://github.com/pytorch/pytorch/pull/137199 (parts that several streams make, of which not all are waited for) and
// https://github.com/pytorch/pytorch/pull/195798.
#include "racing.cuh"

// edge: produce_upper@side -> accumulate@main, missing: wait_stream

__global__ void produce_upper(float* to, int step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = static_cast<float>(i % 31 + 3 * step);
}

int main(int argc, char** argv) {
  const bool fixed = is_fixed(argc, argv);
  const cudaStream_t compute = new_stream(), lower = new_stream(), upper = new_stream();
  float *x = new_floats(), *sum = new_floats();
  run([&](int step) {
    wait_stream(lower, compute);
    wait_stream(upper, compute);
    produce<<<kGrid / 2, kBlock, 0, lower>>>(x, step);
    produce_upper<<<kGrid / 2, kBlock, 0, upper>>>(x + kCount / 2, step);
    wait_stream(compute, lower);
    if (fixed) wait_stream(compute, upper);
    work<<<1, 1, 0, compute>>>(kGapNs);
    accumulate<<<kGrid, kBlock, 0, compute>>>(sum, x);
    wait_stream(compute, upper);
  });
  return print_digest(sum);
}
