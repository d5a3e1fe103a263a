// "Any CUDA program with several streams", on the fake driver: each word is something that such programs do, on a
// producer's and a consumer's stream. At the end it prints what went into each stream. Words: plain (orders the two by
// an event), races (forgets that), captured (the producer's stream, twice), default-streams, everything (each kind of
// call once), rectangles (copies and sets of rows), threads N (of four threads, each with its own streams),
// checkpoints, forks, again (executes itself).
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fake_driver.h"
#include "fake_memory.h"

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: error %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(9);
}
#define CHECKED(call) check(call, #call)

CUcontext use_device() {
  CUcontext context = nullptr;
  CHECKED(cuDevicePrimaryCtxRetain(&context, 0));
  CHECKED(cuCtxSetCurrent(context));
  return context;
}

struct Streams {
  CUstream producer = nullptr, consumer = nullptr;
  CUdeviceptr first = 0, second = 0, third = 0;
  CUevent event = nullptr;
  Streams() {
    CHECKED(cuStreamCreate(&producer, CU_STREAM_NON_BLOCKING));
    CHECKED(cuStreamCreate(&consumer, CU_STREAM_NON_BLOCKING));
    for (CUdeviceptr* one : {&first, &second, &third}) CHECKED(cuMemAlloc(one, 64));
    CHECKED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
};

void move(CUstream stream, CUdeviceptr from, CUdeviceptr to, int us) {
  FakeTarget target{reinterpret_cast<int*>(to), 3};
  void* parameters[] = {&us, &from, &target};
  CHECKED(cuLaunchKernel(fake_driver_moving_kernel(), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

int produce_then_consume(Streams& s, bool is_ordered) {
  move(s.producer, s.first, s.second, 1);
  if (is_ordered) {
    CHECKED(cuEventRecord(s.event, s.producer));
    CHECKED(cuStreamWaitEvent(s.consumer, s.event, 0));
  }
  move(s.consumer, s.second, s.third, 1);
  int result = 0;
  CHECKED(cuMemcpyDtoHAsync(&result, s.third, sizeof(result), s.consumer));
  CHECKED(cuStreamSynchronize(s.consumer));
  CHECKED(cuStreamSynchronize(s.producer));
  return result;
}

void captured(Streams& s) {
  for (int i = 0; i < 2; ++i) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    CHECKED(cuStreamBeginCapture(s.producer, CU_STREAM_CAPTURE_MODE_GLOBAL));
    move(s.producer, s.first, s.second, 11);
    move(s.producer, s.second, s.third, 12);
    CHECKED(cuStreamEndCapture(s.producer, &graph));
    CHECKED(cuGraphInstantiateWithFlags(&executable, graph, 0));
    std::size_t nodes = 0;
    CHECKED(cuGraphGetNodes(graph, nullptr, &nodes));
    std::printf("graph of %zu\n", nodes);
    CHECKED(cuGraphLaunch(executable, s.consumer));
  }
  move(s.consumer, s.second, s.third, 13);
  CHECKED(cuCtxSynchronize());
}

void everything(Streams& s) {
  move(s.producer, s.first, s.second, 1);
  move(s.producer, reinterpret_cast<CUdeviceptr>(fake_driver_global()), s.second, 1);
  CHECKED(cuEventRecord(s.event, s.producer));
  CHECKED(cuStreamWaitEvent(s.consumer, s.event, 0));
  void* pinned = nullptr;
  CHECKED(cuMemHostAlloc(&pinned, 32, 0));
  int pageable = 0;
  CHECKED(cuMemcpyDtoHAsync(pinned, s.second, 16, s.consumer));
  CHECKED(cuMemcpyDtoHAsync(&pageable, s.second, 4, s.consumer));
  CHECKED(cuMemcpyDtoDAsync(s.third, s.second, 24, s.consumer));
  CHECKED(cuMemsetD8Async(s.third, 0, 8, s.consumer));
  CHECKED(cuEventSynchronize(s.event));
  CHECKED(cuStreamSynchronize(s.consumer));
  CHECKED(cuStreamQuery(s.producer));
  CHECKED(cuEventQuery(s.event));
  CUdeviceptr later = 0;
  CHECKED(cuMemAllocAsync(&later, 128, s.consumer));
  CHECKED(cuMemFreeAsync(later, s.consumer));
  CHECKED(cuMemFree(s.first));
  CHECKED(cuCtxSynchronize());
  std::printf("blocks %llx %llx %llx %llx %llx\n", static_cast<unsigned long long>(s.first),
              static_cast<unsigned long long>(s.second), static_cast<unsigned long long>(s.third),
              reinterpret_cast<unsigned long long>(pinned), static_cast<unsigned long long>(later));
}

// Rows of 4 bytes in pitches of 8 and 16, from the second row on; a kernel with packed parameters; a word.
void rectangles(Streams& s) {
  CUDA_MEMCPY2D flat{};
  flat.srcMemoryType = flat.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  flat.srcDevice = s.first;
  flat.srcY = 1;
  flat.srcPitch = 8;
  flat.dstDevice = s.second;
  flat.dstXInBytes = 2;
  flat.dstPitch = 16;
  flat.WidthInBytes = 4;
  flat.Height = 3;
  CHECKED(cuMemcpy2DAsync(&flat, s.producer));
  CUDA_MEMCPY3D deep{};
  deep.srcMemoryType = deep.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  deep.srcDevice = s.first;
  deep.srcPitch = deep.dstPitch = 4;
  deep.srcHeight = deep.dstHeight = 3;
  deep.dstDevice = s.second;
  deep.dstZ = 1;
  deep.WidthInBytes = 4;
  deep.Height = deep.Depth = 2;
  CHECKED(cuMemcpy3DAsync(&deep, s.producer));
  CHECKED(cuMemsetD2D16Async(s.third, 8, 0, 3, 2, s.producer));
  CHECKED(cuStreamWriteValue32(s.producer, s.third, 1, 0));
  CHECKED(cuMemcpyHtoD(s.first, &flat, 8));
  struct {
    int us = 1;
    CUdeviceptr from, to;
    long count = 3;
  } packed{1, s.first, s.second + 8, 3};
  std::size_t bytes = sizeof(packed);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  CHECKED(cuLaunchKernel(fake_driver_moving_kernel(), 1, 1, 1, 1, 1, 1, 0, s.producer, nullptr, extra));
  CHECKED(cuCtxSynchronize());
  std::printf("blocks %llx %llx %llx\n", static_cast<unsigned long long>(s.first),
              static_cast<unsigned long long>(s.second), static_cast<unsigned long long>(s.third));
}

void default_streams(Streams& s) {
  move(nullptr, s.first, s.second, 21);
  move(CU_STREAM_PER_THREAD, s.first, s.second, 22);
  move(CU_STREAM_LEGACY, s.first, s.second, 23);
  CHECKED(cuCtxSynchronize());
}

void on_threads(CUcontext context, int count) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([=, &wrong] {
      CHECKED(cuCtxSetCurrent(context));
      Streams own;
      for (int n = 0; n < count; ++n)
        if (produce_then_consume(own, true) != 2) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("wrong %d\n", wrong.load());
}

void checkpoints(Streams& s) {
  using Checkpoint = void (*)(const char*, const void*, std::size_t, void*);
  const auto checkpoint = reinterpret_cast<Checkpoint>(::dlsym(RTLD_DEFAULT, "weir_checkpoint"));
  if (checkpoint == nullptr) return;
  const int host[] = {2, 0, 7};
  move(s.producer, s.first, s.second, 1);
  checkpoint("the loss", reinterpret_cast<const void*>(s.second), 12, s.producer);
  move(s.producer, s.second, s.second, 1);
  checkpoint("the loss", reinterpret_cast<const void*>(s.second), 12, s.producer);
  checkpoint("host", host, 4, nullptr);
  checkpoint("nothing", nullptr, 0, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  CHECKED(cuInit(0));
  const CUcontext context = use_device();
  {
    Streams streams;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "plain" || word == "races")
        std::printf("result %d\n", produce_then_consume(streams, word == "plain"));
      else if (word == "captured")
        captured(streams);
      else if (word == "everything")
        everything(streams);
      else if (word == "rectangles")
        rectangles(streams);
      else if (word == "default-streams")
        default_streams(streams);
      else if (word == "threads" && i + 1 < argc)
        on_threads(context, std::atoi(argv[++i]));
      else if (word == "checkpoints")
        checkpoints(streams);
      else if (word == "forks" || word == "again") {
        std::fflush(stdout);
        const pid_t child = ::fork();
        if (child == 0 && word == "again") ::execl("/proc/self/exe", argv[0], "plain", nullptr);
        if (child == 0) ::_exit(0);
        ::waitpid(child, nullptr, 0);
      }
    }
  }
  std::fputs(fake_driver_journal(), stdout);
  const std::string misuse = fake_driver_misuse();
  std::printf("misuse %s\n", misuse.empty() ? "none" : misuse.c_str());
  return 0;
}
