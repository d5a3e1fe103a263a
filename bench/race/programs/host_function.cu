// A host function of one stream fills a staging buffer with the next batch; the copy of another stream may still read
// the batch before it. Like https://github.com/pytorch/tutorials/pull/3261 (pinned memory that is changed after a
// non-blocking copy), with a callback in place of the main thread.
#include "racing.cuh"

// edge: copy@main -> host_function@side, missing: wait_stream

struct Refill {
  float* staging;
  int step;
};

void refill(void* given) {
  const Refill& refill = *static_cast<const Refill*>(given);
  for (int i = 0; i < kCount; ++i) refill.staging[i] = static_cast<float>(i % 83 + refill.step);
}

int main(int argc, char** argv) {
  const bool fixed = is_fixed(argc, argv);
  const cudaStream_t compute = new_stream(), loader = new_stream();
  float *staging = new_pinned(), *x = new_floats(), *sum = new_floats();
  std::vector<Refill> refills;
  for (int step = 0; step <= kSteps; ++step) refills.push_back({staging, step + 1});
  run([&](int step) {
    CHECK(cudaMemcpyAsync(x, staging, kBytes, cudaMemcpyHostToDevice, compute));
    if (fixed) wait_stream(loader, compute);
    accumulate<<<kGrid, kBlock, 0, compute>>>(sum, x);
    work<<<1, 1, 0, loader>>>(kGapNs);
    CHECK(cudaLaunchHostFunc(loader, refill, &refills[step]));
    wait_stream(compute, loader);
  });
  return print_digest(sum);
}
