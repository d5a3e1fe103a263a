// What the CUDA programs with known races share: their switch, checks, kernels of a known length, and the digest of a
// result. Knows nothing of weir.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call) check((call), #call)

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

inline bool is_fixed(int argc, char** argv) { return argc > 1 && std::strcmp(argv[1], "--fixed") == 0; }

constexpr int kSteps = 8;
constexpr int kCount = 1 << 18;  // floats: 1 MiB
constexpr std::size_t kBytes = kCount * sizeof(float);
constexpr std::uint64_t kGapNs = 150'000;  // between racing commands of an undisturbed run
constexpr int kBlock = 256, kGrid = kCount / kBlock;

// Keeps one multiprocessor busy and touches no memory.
__global__ void work(std::uint64_t ns) {
  std::uint64_t begin = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < ns);
}

__global__ void produce(float* to, int step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = static_cast<float>(i % 97 + step);
}

__global__ void accumulate(float* sum, const float* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] += from[i];
}

inline cudaStream_t new_stream() {  // does not wait for the legacy default stream
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}
inline cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}
inline float* new_floats(std::size_t count = kCount) {
  float* floats = nullptr;
  CHECK(cudaMalloc(&floats, count * sizeof(float)));
  CHECK(cudaMemset(floats, 0, count * sizeof(float)));
  return floats;
}
inline float* new_pinned(std::size_t count = kCount) {
  float* floats = nullptr;
  CHECK(cudaMallocHost(&floats, count * sizeof(float)));
  std::memset(floats, 0, count * sizeof(float));
  return floats;
}

// `after` waits for what `before` has been given so far.
inline void wait_stream(cudaStream_t after, cudaStream_t before) {
  const cudaEvent_t event = new_event();
  CHECK(cudaEventRecord(event, before));
  CHECK(cudaStreamWaitEvent(after, event, 0));
  CHECK(cudaEventDestroy(event));
}

// Runs the steps; step 0 warms up, with the device idle around it.
template <class Step>
void run(Step step) {
  CHECK(cudaDeviceSynchronize());
  for (int index = 0; index <= kSteps; ++index) {
    step(index);
    if (index == 0) CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaDeviceSynchronize());
}

// FNV-1a of the result, with the device idle: printing races with nothing.
inline int print_digest(const float* device, std::size_t count = kCount) {
  CHECK(cudaDeviceSynchronize());
  std::vector<float> host(count);
  CHECK(cudaMemcpy(host.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost));
  std::vector<unsigned char> bytes(count * sizeof(float));
  std::memcpy(bytes.data(), host.data(), bytes.size());
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  std::printf("digest %016llx\n", static_cast<unsigned long long>(hash));
  return 0;
}
