// The hand-written competitor: plain kernels with plain arguments, launched by the driver's own launch function.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gpu_raw.h"

namespace raw {
namespace {

__global__ void multiply(const float* in, float* out, float by, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = in[i] * by;
}
__global__ void add(const float* in, float* out, float what, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = in[i] + what;
}
__global__ void absolute(const float* in, float* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = fabsf(in[i]);
}
__global__ void clamp(const float* in, float* out, float low, float high, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = fminf(fmaxf(in[i], low), high);
}

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "raw: %s failed: %d\n", what, result);
  std::exit(1);
}

// The runtime's launch costs a little more than the driver's, and this is the bar: take the cheaper one.
using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                            void**, void**);

class RawStress final : public Stress {
 public:
  RawStress(Mode mode, int streams, int threads) : mode_(mode), thread_count_(mode == Mode::threads ? threads : 1) {
    check(cudaFree(nullptr), "starting CUDA");
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    launch_ = driver == nullptr ? nullptr : reinterpret_cast<Launch>(dlsym(driver, "cuLaunchKernel"));
    check(launch_ == nullptr, "finding cuLaunchKernel");
    const void* symbols[kKernels] = {reinterpret_cast<const void*>(multiply), reinterpret_cast<const void*>(add),
                                     reinterpret_cast<const void*>(absolute), reinterpret_cast<const void*>(clamp)};
    for (int k = 0; k < kKernels; ++k) {
      cudaFunction_t function = nullptr;
      check(cudaGetFuncBySymbol(&function, symbols[k]), "finding a kernel");
      functions_[k] = reinterpret_cast<CUfunction>(function);
    }
    std::vector<float> values(kOperations * kElements);
    for (int s = 0; s < streams; ++s) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i * 7919 + static_cast<std::size_t>(s) * 104729) % 16384) / 1024.0f - 8.0f;
      float *in = nullptr, *out = nullptr;
      check(cudaMalloc(&in, values.size() * sizeof(float)), "cudaMalloc");
      check(cudaMalloc(&out, values.size() * sizeof(float)), "cudaMalloc");
      check(cudaMemcpy(in, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
      inputs_.push_back(in);
      outputs_.push_back(out);
      cudaStream_t stream = nullptr;
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
      streams_.push_back(stream);
    }
    if (mode_ == Mode::graph) capture();
    for (int t = 1; t < thread_count_; ++t) threads_.emplace_back([this, t] { serve(t); });
  }

  ~RawStress() override {
    is_closing_.store(true);
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    cudaDeviceSynchronize();
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    for (float* memory : inputs_) cudaFree(memory);
    for (float* memory : outputs_) cudaFree(memory);
  }

  void iterate() override {
    if (mode_ == Mode::graph) {
      check(cudaGraphLaunch(exec_, streams_[0]), "launching the graph");
      check(cudaStreamSynchronize(streams_[0]), "waiting");
      return;
    }
    if (thread_count_ > 1) {
      done_.store(0, std::memory_order_relaxed);       // published by the release below
      round_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in serve()
      round_.notify_all();
    }
    submit(0);
    if (thread_count_ > 1)
      while (done_.load(std::memory_order_acquire) != thread_count_ - 1) {  // pairs with the release in serve()
      }
    check(cudaDeviceSynchronize(), "waiting");
  }

  std::vector<float> input(int stream) override { return read(inputs_[static_cast<std::size_t>(stream)]); }
  std::vector<float> output(int stream) override { return read(outputs_[static_cast<std::size_t>(stream)]); }

 private:
  std::vector<float> read(const float* from) {
    std::vector<float> values(kOperations * kElements);
    check(cudaMemcpy(values.data(), from, values.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
  }

  void submit(int thread) {
    const Launch launch = launch_;
    const int count = static_cast<int>(streams_.size());
    float by = 1.5f, what = 0.5f, low = 0, high = 10;
    int n = kElements;
    for (int operation = 0; operation < kOperations; ++operation) {
      for (int kernel = 0; kernel < kKernels; ++kernel) {
        for (int s = thread; s < count; s += thread_count_) {
          const auto index = static_cast<std::size_t>(s);
          float* out = outputs_[index] + operation * kElements;
          float* in = kernel == 0 ? inputs_[index] + operation * kElements : out;
          void* with_one[] = {&in, &out, kernel == 0 ? &by : &what, &n};
          void* with_none[] = {&in, &out, &n};
          void* with_two[] = {&in, &out, &low, &high, &n};
          void** const arguments = kernel < 2 ? with_one : kernel == 2 ? with_none : with_two;
          check(launch(functions_[kernel], 1, 1, 1, kElements, 1, 1, 0, streams_[index], arguments, nullptr),
                "a launch");
        }
      }
    }
  }

  void serve(int thread) {
    check(cudaSetDevice(0), "cudaSetDevice");
    for (unsigned seen = 0;; ++seen) {
      // Spins through the pause between two iterations, but not through the other side's turn: threads that burn cores
      // there would slow it down. Pairs with the release in iterate().
      for (long spins = 0; round_.load(std::memory_order_acquire) == seen; ++spins)
        if (spins > 1'000'000) round_.wait(seen, std::memory_order_acquire);
      if (is_closing_.load()) return;
      submit(thread);
      done_.fetch_add(1, std::memory_order_release);  // pairs with the acquire in iterate()
    }
  }

  void capture() {
    cudaEvent_t event = nullptr;
    cudaGraph_t graph = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
    check(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeRelaxed), "capturing");
    check(cudaEventRecord(event, streams_[0]), "capturing");
    for (std::size_t s = 1; s < streams_.size(); ++s) check(cudaStreamWaitEvent(streams_[s], event, 0), "capturing");
    submit(0);
    for (std::size_t s = 1; s < streams_.size(); ++s) {
      check(cudaEventRecord(event, streams_[s]), "capturing");
      check(cudaStreamWaitEvent(streams_[0], event, 0), "capturing");
    }
    check(cudaStreamEndCapture(streams_[0], &graph), "capturing");
    check(cudaGraphInstantiateWithFlags(&exec_, graph, 0), "instantiating");
    check(cudaGraphUpload(exec_, streams_[0]), "uploading");
    check(cudaStreamSynchronize(streams_[0]), "uploading");
    cudaGraphDestroy(graph);
    cudaEventDestroy(event);
  }

  Mode mode_;
  int thread_count_;
  Launch launch_ = nullptr;
  CUfunction functions_[kKernels] = {};
  std::vector<float*> inputs_, outputs_;
  std::vector<cudaStream_t> streams_;
  cudaGraphExec_t exec_ = nullptr;
  std::vector<std::thread> threads_;
  alignas(128) std::atomic<unsigned> round_{0};
  alignas(128) std::atomic<int> done_{0};
  std::atomic<bool> is_closing_{false};
};

}  // namespace

std::unique_ptr<Stress> make_stress(Mode mode, int streams, int threads) {
  return std::make_unique<RawStress>(mode, streams, threads);
}

}  // namespace raw
