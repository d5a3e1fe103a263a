// "Any HIP program", linked with the fake HIP runtime: launches, and says whether its kernels got the parameters that
// it gave. Words, each perhaps followed by a number: see kWords. `stdin` reads words from there, a line each, and says
// "ok" after each.
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <elf.h>
#include <hip/hip_ext.h>
#include <hip/hip_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

#include "kernel/arguments.h"

namespace {

constexpr int kCount = 200'000;

void check(hipError_t result, const char* what) {
  if (result == hipSuccess) return;
  std::printf("%s: error %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(9);
}

hipFunction_t kernel_named(const char* name) {
  alignas(Elf64_Ehdr) unsigned char image[sizeof(Elf64_Ehdr)] = {};
  std::memcpy(image, ELFMAG, SELFMAG);
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  check(hipModuleLoadData(&module, image), "hipModuleLoadData");
  check(hipModuleGetFunction(&function, module, name), "hipModuleGetFunction");
  return function;
}

std::atomic<int> g_ended{0};

// When what is in the stream has ended.
void count_end(hipStream_t stream) {
#ifdef WEIR_LACKS_HOST_FUNCTIONS
  const hipStreamCallback_t count = [](hipStream_t, hipError_t, void*) { g_ended.fetch_add(1); };
  check(hipStreamAddCallback(stream, count, nullptr, 0), "hipStreamAddCallback");
#else
  check(hipLaunchHostFunc(stream, [](void*) { g_ended.fetch_add(1); }, nullptr), "hipLaunchHostFunc");
#endif
}

template <class Pointer>
Pointer* memory_of_device() {
  void* device = nullptr;
  check(hipMalloc(&device, sizeof(int) * kCount), "hipMalloc");
  return static_cast<Pointer*>(device);
}

hipStream_t new_stream() {
  hipStream_t stream = nullptr;
  check(hipStreamCreateWithPriority(&stream, 0, 0), "hipStreamCreateWithPriority");
  return stream;
}

struct Program {
  hipFunction_t fill = kernel_named("weir_fill_i32");
  int launched = 0, most = 0;

  // Calls with the parameters of a fill.
  template <class Launch>
  void with_parameters(int* to, int value, Launch&& launch) const {
    weir::KernelArguments arguments{};
    arguments.operands[0] = to;
    arguments.dims[0] = kCount;
    arguments.scalars[0] = static_cast<float>(value);
    void* parameters[] = {&arguments};
    launch(parameters);
  }
  void fill_by(hipFunction_t kernel, int* to, int value, hipStream_t stream, bool is_by_module) const {
    with_parameters(to, value, [&](void** parameters) {
      if (is_by_module)
        check(hipModuleLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), "hipModuleLaunchKernel");
      else
        check(hipLaunchKernel(kernel, dim3(1), dim3(1), parameters, 0, stream), "hipLaunchKernel");
    });
  }
  void fill_with(int* to, int value, hipStream_t stream, bool is_by_module) const {
    fill_by(fill, to, value, stream, is_by_module);
  }

  // The host function behind each command may run a little later than a mark there is reached.
  void launch(int i, int* device, int* host, hipStream_t stream) {
    if (i % 4 == 3)
      check(hipMemcpyAsync(host, device, sizeof(int) * kCount, hipMemcpyDeviceToHost, stream), "hipMemcpyAsync");
    else
      fill_with(device, i, stream, i % 2 == 0);
    ++launched;
    most = std::max(most, launched - g_ended.load());
    count_end(stream);
  }

  void run(int count, hipStream_t stream) {
    void* host = nullptr;
    int* const device = memory_of_device<int>();
    check(hipHostMalloc(&host, sizeof(int) * kCount, 0), "hipHostMalloc");
    for (int i = 0; i < count; ++i) launch(i, device, static_cast<int*>(host), stream);
    check(hipStreamSynchronize(stream), "hipStreamSynchronize");
    const int expected = (count - 1) / 4 * 4 + 2;  // of the last fill before the last copy, where count % 4 == 0
    const auto* const values = static_cast<int*>(host);
    const bool is_right = std::all_of(values, values + kCount, [&](int value) { return value == expected; });
    std::puts(is_right ? "values right" : "values wrong");
  }
};

void capture(Program& program, int count) {
  const hipStream_t stream = new_stream();
  int* const device = memory_of_device<int>();
  // The default stream cannot be captured.
  if (hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal) == hipSuccess) std::_Exit(8);
  check(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), "hipStreamBeginCapture");
  for (int i = 0; i < count; ++i) program.fill_with(device, i, stream, i % 2 == 0);
  hipGraph_t graph = nullptr;
  check(hipStreamEndCapture(stream, &graph), "hipStreamEndCapture");
  hipGraphExec_t exec = nullptr;
  check(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0), "hipGraphInstantiate");
  for (int i = 0; i < 5; ++i) check(hipGraphLaunch(exec, stream), "hipGraphLaunch");
  check(hipStreamSynchronize(stream), "hipStreamSynchronize");
  std::puts("graph ran");
}

// Two streams of which the second waits for the first, each time for another event.
void events(Program& program, int count) {
  const hipStream_t first = new_stream(), second = new_stream();
  int* const device = memory_of_device<int>();
  for (int i = 0; i < count; ++i) {
    hipEvent_t event = nullptr;
    check(hipEventCreate(&event), "hipEventCreate");
    program.fill_with(device, i, first, true);
    check(hipEventRecord(event, first), "hipEventRecord");
    check(hipStreamWaitEvent(second, event, 0), "hipStreamWaitEvent");
    program.fill_with(device, i, second, true);
    check(hipEventSynchronize(event), "hipEventSynchronize");
    check(hipEventDestroy(event), "hipEventDestroy");
  }
  check(hipDeviceSynchronize(), "hipDeviceSynchronize");
  check(hipStreamDestroy(first), "hipStreamDestroy");
  check(hipStreamDestroy(second), "hipStreamDestroy");
}

void copy(int count) {
  int* const device = memory_of_device<int>();
  int host = 0;
  check(hipMemset(device, 0, sizeof host), "hipMemset");
  for (int i = 0; i < count; ++i) check(hipMemcpy(&host, device, sizeof host, hipMemcpyDeviceToHost), "hipMemcpy");
}

// Nobody asks HIP whether they have ended.
void quiet(Program& program, int count) {
  const hipStream_t stream = new_stream();
  int* const device = memory_of_device<int>();
  const int until = g_ended.load() + count;
  for (int i = 0; i < count; ++i) {
    program.fill_with(device, i, stream, true);
    count_end(stream);
  }
  while (g_ended.load() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void names(Program& program) {
  const hipStream_t stream = new_stream();
  int* const device = memory_of_device<int>();
  program.fill_by(kernel_named("_Z9scale_allPfi.kd=weir_fill_i32"), device, 1, stream, false);
  program.fill_by(kernel_named("_Z23ncclDevKernel_AllReducev=weir_fill_i32"), device, 2, stream, true);
  check(hipStreamSynchronize(stream), "hipStreamSynchronize");
}

void timed(Program& program) {
  const hipStream_t stream = new_stream();
  hipEvent_t stop = nullptr;
  check(hipEventCreate(&stop), "hipEventCreate");
  program.with_parameters(memory_of_device<int>(), 1, [&](void** parameters) {
    check(hipExtLaunchKernel(program.fill, dim3(1), dim3(1), parameters, 0, stream, nullptr, stop, 0),
          "hipExtLaunchKernel");
  });
  check(hipStreamSynchronize(stream), "hipStreamSynchronize");
}

void own_stream(Program& program, int count) {
  std::thread([&] {
    int* const device = memory_of_device<int>();
    for (int i = 0; i < count; ++i) program.fill_with(device, i, hipStreamPerThread, true);
    check(hipStreamSynchronize(hipStreamPerThread), "hipStreamSynchronize");
  }).join();
}

// A stream that never gets on, and a thread that waits for it.
void get_stuck(Program& program) {
  const hipStream_t stream = new_stream();
  static std::uint32_t never = 0;
  int* const device = memory_of_device<int>();
  program.fill_with(device, 1, stream, true);
  check(hipStreamWaitValue32(stream, &never, 1, hipStreamWaitValueGte, 0xFFFFFFFF), "hipStreamWaitValue32");
  program.fill_with(device, 2, stream, true);
  std::thread([stream] { check(hipStreamSynchronize(stream), "hipStreamSynchronize"); }).detach();
}

// Launches that the runtime refuses before it takes a lock, which the child may not have.
void fail(int count) {
  for (int n = 0; n < count; ++n)
    if (hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != hipErrorInvalidValue)
      std::_Exit(8);
}
void fork_off() {
  const pid_t child = ::fork();
  if (child == 0) {
    fail(5);
    std::_Exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  std::printf("child %d\n", status);
}

struct Word {
  const char* name;
  void (*run)(Program& program, int count);
};
constexpr Word kWords[] = {
    {"run", [](Program& program, int count) { program.run(count, new_stream()); }},  // kernels and copies on a stream
    {"default", [](Program& program, int count) { program.run(count, nullptr); }},
    {"own", own_stream},  // kernels on the default stream of another thread
    {"capture", capture},
    {"events", events},
    {"copy", [](Program&, int count) { copy(count); }},
    {"quiet", quiet},
    {"names", [](Program& program, int) { names(program); }},
    {"timed", [](Program& program, int) { timed(program); }},
    {"stuck", [](Program& program, int) { get_stuck(program); }},
    {"fork", [](Program&, int) { fork_off(); }},
    {"reset", [](Program&, int) { check(hipDeviceReset(), "hipDeviceReset"); }},
    {"fails",
     [](Program&, int) {
       fail(20);
       std::puts("failed as they should");
     }},
};

void execute(Program& program, const std::string& name, const std::string& next) {
  for (const Word& word : kWords)
    if (word.name == name) word.run(program, std::atoi(next.c_str()));
}

}  // namespace

int main(int argc, char** argv) {
  check(hipInit(0), "hipInit");
  Program program;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    execute(program, word, i + 1 < argc ? argv[i + 1] : "");
    for (std::string name, count; word == "stdin" && std::cin >> name >> count;) {
      execute(program, name, count);
      std::puts("ok");
      std::fflush(stdout);
    }
  }
  std::printf("most %d\n", program.most);
  return 0;
}
