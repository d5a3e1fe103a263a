// A buffer is cleared on another stream than the one that accumulates into it. Like
// https://github.com/pytorch/pytorch/pull/185252 and https://github.com/sgl-project/sglang/pull/39143: a helper that
// touches a buffer uses a stream of its own, and its caller believes it to be done.
#include "racing.cuh"

// edge: set@side -> accumulate@main, missing: wait_stream

int main(int argc, char** argv) {
  const bool fixed = is_fixed(argc, argv);
  const cudaStream_t compute = new_stream(), helper = new_stream();
  float *x = new_floats(), *partial = new_floats(), *sum = new_floats();
  run([&](int step) {
    wait_stream(helper, compute);
    CHECK(cudaMemsetAsync(partial, 0, kBytes, helper));
    produce<<<kGrid, kBlock, 0, compute>>>(x, step);
    work<<<1, 1, 0, compute>>>(kGapNs);
    if (fixed) wait_stream(compute, helper);
    accumulate<<<kGrid, kBlock, 0, compute>>>(partial, x);
    wait_stream(compute, helper);
    accumulate<<<kGrid, kBlock, 0, compute>>>(sum, partial);
  });
  return print_digest(sum);
}
