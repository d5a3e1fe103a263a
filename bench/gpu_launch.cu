// What a launch of an empty kernel takes the host, in a program that knows nothing of Weir: the least of many rounds.
// bench/sched_pytorch/launch_cost.py runs it with and without `weir sched run`.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

__global__ void nothing() {}

constexpr int kRounds = 400, kLaunches = 500;  // fewer than the driver takes before it makes a caller wait

}  // namespace

int main() {
  double best_ns = 1e300;
  for (int round = 0; round < kRounds; ++round) {
    if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
      std::fprintf(stderr, "bench_gpu_launch: %s\n", cudaGetErrorString(error));
      return 1;
    }
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) nothing<<<1, 32>>>();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    best_ns = std::min(best_ns, took.count() / kLaunches);
  }
  std::printf("%.4f us per launch of an empty kernel\n", best_ns / 1e3);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
