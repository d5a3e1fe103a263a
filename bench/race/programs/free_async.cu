// A buffer of the stream-ordered allocator is freed on the stream that allocated it, while a kernel of another stream
// reads it; the next allocation of the first stream gets the same memory and writes it. Like
// https://github.com/meta-pytorch/torchrec/pull/4231, with cudaFreeAsync() in place of a caching allocator.
#include "racing.cuh"

// edge: accumulate@side -> produce@main, missing: wait_stream

int main(int argc, char** argv) {
  const bool fixed = is_fixed(argc, argv);
  const cudaStream_t owner = new_stream(), reader = new_stream();
  cudaMemPool_t pool = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t keep = UINT64_MAX;  // freed memory stays in the pool
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  float *sum = new_floats(), *other = new_floats();
  run([&](int step) {
    float *x = nullptr, *next = nullptr;
    CHECK(cudaMallocAsync(&x, kBytes, owner));
    produce<<<kGrid, kBlock, 0, owner>>>(x, step);
    wait_stream(reader, owner);
    accumulate<<<kGrid, kBlock, 0, reader>>>(sum, x);
    if (fixed) wait_stream(owner, reader);
    CHECK(cudaFreeAsync(x, owner));
    work<<<1, 1, 0, owner>>>(kGapNs);
    CHECK(cudaMallocAsync(&next, kBytes, owner));
    if (next != x) {
      std::fprintf(stderr,
                   "the pool gave other memory, so nothing can race here: report this with the driver's version\n");
      std::exit(1);
    }
    produce<<<kGrid, kBlock, 0, owner>>>(next, 1000 + step);
    accumulate<<<kGrid, kBlock, 0, owner>>>(other, next);
    CHECK(cudaFreeAsync(next, owner));
    wait_stream(owner, reader);
  });
  CHECK(cudaDeviceSynchronize());
  accumulate<<<kGrid, kBlock, 0, owner>>>(sum, other);
  return print_digest(sum);
}
