// A prefetcher with two buffers: before it fills one again, it waits for the consumer of three steps ago, but the
// buffer's last consumer was that of two steps ago (off by one). Like https://github.com/NVIDIA/Megatron-LM/pull/5222
// and https://github.com/ROCm/Megatron-LM/pull/146: a buffer of a pool of two is given out again before its last user
// has ended.
#include "racing.cuh"

// edge: accumulate@main -> copy@side, missing: wait_event

int main(int argc, char** argv) {
  const int back = is_fixed(argc, argv) ? 2 : 3;
  const cudaStream_t compute = new_stream(), prefetch = new_stream();
  float *buffers[2] = {new_floats(), new_floats()}, *sum = new_floats();
  std::vector<cudaEvent_t> filled, used;
  std::vector<float*> batches;
  for (int step = 0; step <= kSteps; ++step) {
    filled.push_back(new_event());
    used.push_back(new_event());
    batches.push_back(new_pinned());
    for (int i = 0; i < kCount; ++i) batches.back()[i] = static_cast<float>(i % 89 + step);
  }
  run([&](int step) {
    if (step >= back) CHECK(cudaStreamWaitEvent(prefetch, used[step - back], 0));
    work<<<1, 1, 0, prefetch>>>(kGapNs / 2);  // decodes the batch
    CHECK(cudaMemcpyAsync(buffers[step % 2], batches[step], kBytes, cudaMemcpyHostToDevice, prefetch));
    CHECK(cudaEventRecord(filled[step], prefetch));
    CHECK(cudaStreamWaitEvent(compute, filled[step], 0));
    accumulate<<<kGrid, kBlock, 0, compute>>>(sum, buffers[step % 2]);
    CHECK(cudaEventRecord(used[step], compute));
  });
  return print_digest(sum);
}
