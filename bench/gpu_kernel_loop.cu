#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "gpu_kernel_loop.h"

namespace raw {
namespace {

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

class EventLoop final : public KernelLoop {
 public:
  EventLoop(const std::string& code, const std::string& function, int rows, int columns, int threads,
            std::size_t element_bytes)
      : rows_(rows), columns_(columns), threads_(threads) {
    const std::size_t bytes = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * element_bytes;
    check(cudaLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "loading the code");
    check(cudaLibraryGetKernel(&kernel_, library_, function.c_str()), "finding the function");
    check(cudaMalloc(&in_, bytes), "cudaMalloc");
    check(cudaMalloc(&out_, bytes), "cudaMalloc");
    check(cudaMemset(in_, 0x3c, bytes), "cudaMemset");  // small numbers in every precision
    check(cudaStreamCreate(&stream_), "cudaStreamCreate");
    check(cudaEventCreate(&began_), "cudaEventCreate");
    check(cudaEventCreate(&ended_), "cudaEventCreate");
  }
  ~EventLoop() override {
    cudaEventDestroy(began_);
    cudaEventDestroy(ended_);
    cudaStreamDestroy(stream_);
    cudaFree(in_);
    cudaFree(out_);
    cudaLibraryUnload(library_);
  }

  float run(int runs) override {
    void* arguments[] = {&in_, &out_, &columns_};
    check(cudaEventRecord(began_, stream_), "cudaEventRecord");
    for (int i = 0; i < runs; ++i)
      check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel_), dim3(static_cast<unsigned>(rows_)),
                             dim3(static_cast<unsigned>(threads_)), arguments, 0, stream_),
            "cudaLaunchKernel");
    check(cudaEventRecord(ended_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(ended_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, began_, ended_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  int rows_, columns_, threads_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  void *in_ = nullptr, *out_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t began_ = nullptr, ended_ = nullptr;
};

}  // namespace

std::unique_ptr<KernelLoop> make_kernel_loop(const std::string& code, const std::string& function, int rows,
                                             int columns, int threads, std::size_t element_bytes) {
  return std::make_unique<EventLoop>(code, function, rows, columns, threads, element_bytes);
}

}  // namespace raw
