#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gpu_gemm.h"

namespace raw {
namespace {

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s failed: %d\n", what, result);
  std::exit(1);
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  check(function == nullptr, name);
}

class CublasLoop final : public Products {
 public:
  CublasLoop(int streams, int size) : size_(size), lanes_(streams) {
    // Opened by hand only so that the benchmark links without cuBLAS; called like any other function.
    void* library = dlopen("libcublas.so.13", RTLD_NOW);
    if (library == nullptr) library = dlopen("libcublas.so.12", RTLD_NOW);
    if (library == nullptr) library = dlopen("/usr/local/cuda/lib64/libcublas.so", RTLD_NOW);
    check(library == nullptr, "opening cuBLAS");
    cublasStatus_t (*create)(cublasHandle_t*) = nullptr;
    cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t) = nullptr;
    find(library, "cublasCreate_v2", create);
    find(library, "cublasSetStream_v2", set_stream);
    find(library, "cublasSgemm_v2", gemm_);
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
    std::vector<float> values(bytes / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761u % 2048) / 1024 - 1;
    for (Lane& lane : lanes_) {
      check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking), "cudaStreamCreate");
      check(create(&lane.handle), "cublasCreate");
      check(set_stream(lane.handle, lane.stream), "cublasSetStream");
      for (float** matrix : {&lane.a, &lane.b, &lane.c}) {
        check(cudaMalloc(matrix, bytes), "cudaMalloc");
        check(cudaMemcpy(*matrix, values.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      }
    }
  }
  ~CublasLoop() override {
    for (Lane& lane : lanes_)
      for (float* matrix : {lane.a, lane.b, lane.c}) cudaFree(matrix);
  }

  void iterate() override {
    const float one = 1, zero = 0;
    for (Lane& lane : lanes_)
      check(gemm_(lane.handle, CUBLAS_OP_N, CUBLAS_OP_N, size_, size_, size_, &one, lane.b, size_, lane.a, size_, &zero,
                  lane.c, size_),
            "cublasSgemm");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

 private:
  struct Lane {
    cudaStream_t stream = nullptr;
    cublasHandle_t handle = nullptr;
    float *a = nullptr, *b = nullptr, *c = nullptr;
  };
  int size_;
  std::vector<Lane> lanes_;
  cublasStatus_t (*gemm_)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const float*,
                          const float*, int, const float*, int, const float*, float*, int) = nullptr;
};

}  // namespace

std::unique_ptr<Products> make_products(int streams, int size) { return std::make_unique<CublasLoop>(streams, size); }

}  // namespace raw
