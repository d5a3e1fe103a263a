// A kernel of the legacy default stream fills a buffer that a non-blocking stream reads. Blocking streams would wait
// for the default stream by themselves; a stream made with cudaStreamNonBlocking does not. Like
// https://github.com/pytorch/pytorch/issues/2702 and the side streams of
// https://github.com/pytorch/pytorch/pull/192141.
#include "racing.cuh"

// edge: produce@main -> accumulate@side, missing: wait_stream

int main(int argc, char** argv) {
  const bool fixed = is_fixed(argc, argv);
  const cudaStream_t side = new_stream(), legacy = nullptr;
  float *x = new_floats(), *sum = new_floats();
  run([&](int step) {
    wait_stream(legacy, side);
    produce<<<kGrid, kBlock, 0, legacy>>>(x, step);
    if (fixed) wait_stream(side, legacy);
    work<<<1, 1, 0, side>>>(kGapNs);
    accumulate<<<kGrid, kBlock, 0, side>>>(sum, x);
  });
  return print_digest(sum);
}
