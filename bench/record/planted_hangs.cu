// Programs that do not go on, one for each word, for `weir record --hang-timeout`: what is planted, and what a
// diagnosis has to name, stands beside each. Needs a GPU; bench/record/measure.py runs them all. usage: planted_hangs
// NAME | planted_hangs list. Stacks have names only where these are exported:
//   nvcc -O2 -arch=native -Xcompiler -rdynamic -o planted_hangs planted_hangs.cu -lcuda
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
  std::_Exit(9);
}

}  // namespace

// Not in the namespace, so that stacks have its name.
extern "C" __attribute__((noinline)) void read_next_batch() {
  for (;;) ::pause();
}

__global__ void scale(float* data, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] = data[i] * 1.0001f + 1.0f;
}
__global__ void spin_forever(volatile int* flag) {
  while (*flag == 0) __nanosleep(1000);
}
// Named as NCCL's kernels are: two ranks cannot share a GPU under NCCL itself. Waits until all ranks have come.
__global__ void ncclDevKernel_AllReduce_Sum_f32_RING_LL(volatile int* joined, int number, int ranks) {
  atomicAdd_system(const_cast<int*>(joined) + number, 1);
  while (joined[number] < ranks) __nanosleep(1000);
}

namespace {

constexpr int kCount = 1 << 20;
float* g_data = nullptr;
int* g_flags = nullptr;  // zeros that nobody writes

cudaStream_t stream() {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
  return made;
}
void work(cudaStream_t on, int launches) {
  for (int i = 0; i < launches; ++i) scale<<<kCount / 256, 256, 0, on>>>(g_data, kCount);
}
void spin(cudaStream_t on) { spin_forever<<<1, 1, 0, on>>>(g_flags); }
cudaEvent_t recorded(cudaStream_t on) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  check(cudaEventRecord(event, on), "cudaEventRecord");
  return event;
}
void wait_for(cudaStream_t on, cudaStream_t other) {
  check(cudaStreamWaitEvent(on, recorded(other), 0), "cudaStreamWaitEvent");
}

template <class Function>
Function* driver(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
CUdeviceptr word(int number) { return reinterpret_cast<CUdeviceptr>(g_flags + 16 * (number + 1)); }
void await_value(cudaStream_t on, int number) {
  if (driver<decltype(cuStreamWaitValue32_v2)>("cuStreamWaitValue32_v2")(on, word(number), 1,
                                                                         CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
    std::_Exit(9);
}
void write_value(cudaStream_t on, int number) {
  if (driver<decltype(cuStreamWriteValue32_v2)>("cuStreamWriteValue32_v2")(on, word(number), 1, 0) != CUDA_SUCCESS)
    std::_Exit(9);
}

// The host goes on launching elsewhere for a while, as programs do that notice nothing.
void go_on(int launches = 200) {
  const cudaStream_t other = stream();
  for (int i = 0; i < launches; ++i) {
    work(other, 1);
    ::usleep(500);
  }
  check(cudaStreamSynchronize(other), "cudaStreamSynchronize");
}

int* joined() {
  const int file = ::shm_open(std::getenv("PLANTED_SHARED"), O_CREAT | O_RDWR, 0600);
  if (file < 0 || ::ftruncate(file, 4096) != 0) std::_Exit(9);
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  check(cudaHostRegister(memory, 4096, cudaHostRegisterMapped), "cudaHostRegister");
  int* seen = nullptr;
  check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&seen), memory, 0), "cudaHostGetDevicePointer");
  return seen;
}
int rank() { return std::atoi(std::getenv("RANK")); }
void all_reduce(cudaStream_t on, int* counters, int number) {
  ncclDevKernel_AllReduce_Sum_f32_RING_LL<<<1, 1, 0, on>>>(counters, number, 2);
}
// Three rounds together, then something else.
cudaStream_t together(int* counters) {
  const cudaStream_t on = stream();
  for (int number = 0; number < 3; ++number) {
    work(on, 5);
    all_reduce(on, counters, number);
  }
  check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  return on;
}

struct Planted {
  const char* name;
  const char* culprit;  // words that the sentence must have
  void (*run)();
};

const Planted kPlanted[] = {
    {"endless_kernel", "spin_forever",
     [] {
       const cudaStream_t on = stream();
       work(on, 20);
       spin(on);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"endless_among_many", "spin_forever",
     [] {
       std::vector<cudaStream_t> streams(4);
       for (cudaStream_t& one : streams) one = stream();
       for (int i = 0; i < 100; ++i) {
         work(streams[static_cast<std::size_t>(i % 4)], 1);
         if (i == 50) spin(streams[2]);
       }
       check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
     }},
    {"endless_while_others_go_on", "spin_forever",
     [] {
       const cudaStream_t on = stream();
       work(on, 5);
       spin(on);
       go_on();
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"three_streams_behind", "spin_forever",
     [] {
       const cudaStream_t a = stream(), b = stream(), c = stream();
       work(a, 3);
       spin(a);
       wait_for(b, a);
       work(b, 4);
       wait_for(c, b);
       work(c, 2);
       check(cudaStreamSynchronize(c), "cudaStreamSynchronize");
     }},
    {"host_waits_for_event", "spin_forever",
     [] {
       const cudaStream_t on = stream();
       spin(on);
       check(cudaEventSynchronize(recorded(on)), "cudaEventSynchronize");
     }},
    {"value_never_written", "nobody",
     [] {
       const cudaStream_t on = stream();
       work(on, 10);
       await_value(on, 0);
       work(on, 10);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"event_behind_a_value", "nobody",
     [] {
       const cudaStream_t a = stream(), b = stream();
       await_value(a, 0);
       wait_for(b, a);
       work(b, 5);
       check(cudaStreamSynchronize(b), "cudaStreamSynchronize");
     }},
    {"two_streams_wait_for_each_other", "each other",
     [] {
       const cudaStream_t a = stream(), b = stream();
       work(a, 3);
       await_value(a, 0);
       write_value(a, 1);
       work(b, 3);
       await_value(b, 1);
       write_value(b, 0);
       check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
     }},
    {"three_streams_wait_for_each_other", "each other",
     [] {
       const cudaStream_t on[] = {stream(), stream(), stream()};
       for (int i = 0; i < 3; ++i) {
         work(on[i], 2);
         await_value(on[i], i);
         write_value(on[i], (i + 1) % 3);
       }
       check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
     }},
    {"host_function_never_returns", "function",
     [] {
       const cudaStream_t on = stream();
       work(on, 5);
       check(cudaLaunchHostFunc(on, [](void*) { read_next_batch(); }, nullptr), "cudaLaunchHostFunc");
       work(on, 5);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"graph_never_ends", "graph",
     [] {
       const cudaStream_t on = stream();
       cudaGraph_t graph = nullptr;
       cudaGraphExec_t exec = nullptr;
       check(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
       work(on, 5);
       spin(on);
       check(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
       check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
       check(cudaGraphLaunch(exec, on), "cudaGraphLaunch");
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"default_stream", "spin_forever",
     [] {
       work(nullptr, 5);
       spin(nullptr);
       check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
     }},
    {"queue_is_full", "spin_forever",
     [] {
       const cudaStream_t on = stream();
       spin(on);
       work(on, 100'000);
     }},
    {"copy_behind_kernel", "spin_forever",
     [] {
       const cudaStream_t on = stream();
       std::vector<float> back(kCount);
       spin(on);
       check(cudaMemcpyAsync(back.data(), g_data, kCount * sizeof(float), cudaMemcpyDeviceToHost, on),
             "cudaMemcpyAsync");
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"host_never_launches", "read_next_batch",
     [] {
       const cudaStream_t on = stream();
       work(on, 20);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
       read_next_batch();
     }},
    {"host_threads_deadlock", "launched nothing",
     [] {
       static std::mutex first, second;
       const cudaStream_t on = stream();
       work(on, 20);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
       std::thread other([] {
         const std::lock_guard lock(second);
         ::usleep(200'000);
         const std::lock_guard stuck(first);
       });
       const std::lock_guard lock(first);
       ::usleep(200'000);
       const std::lock_guard stuck(second);
       other.join();
     }},
    // Of two ranks.
    {"rank_never_joins", "rank 1",
     [] {
       int* const counters = joined();
       const cudaStream_t on = together(counters);
       if (rank() == 1) read_next_batch();
       all_reduce(on, counters, 3);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"rank_is_stuck_elsewhere", "spin_forever",
     [] {
       int* const counters = joined();
       const cudaStream_t on = together(counters);
       if (rank() == 1) spin(on);
       all_reduce(on, counters, 3);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
    {"rank_has_died", "rank 1",
     [] {
       int* const counters = joined();
       const cudaStream_t on = together(counters);
       if (rank() == 1) std::abort();
       all_reduce(on, counters, 3);
       check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "list";
  for (const Planted& one : kPlanted) {
    if (word == "list") std::printf("%s\t%s\n", one.name, one.culprit);
    if (word != one.name) continue;
    check(cudaMalloc(&g_data, kCount * sizeof(float)), "cudaMalloc");
    check(cudaMalloc(&g_flags, 4096), "cudaMalloc");
    check(cudaMemset(g_flags, 0, 4096), "cudaMemset");
    check(cudaMemset(g_data, 0, kCount * sizeof(float)), "cudaMemset");
    work(nullptr, 10);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    one.run();
    std::printf("%s: went on\n", one.name);
  }
  return 0;
}
