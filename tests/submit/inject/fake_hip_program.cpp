// "Any HIP program", linked with the fake HIP runtime: launches, and says whether its kernels got the parameters that
// it gave. Words: run N (kernels and copies on a stream), default N (on the default stream), capture N (a graph),
// fails.
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <elf.h>
#include <hip/hip_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernel/arguments.h"

namespace {

constexpr int kCount = 200'000;

void check(hipError_t result, const char* what) {
  if (result == hipSuccess) return;
  std::printf("%s: error %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  std::_Exit(9);
}

hipFunction_t fill_kernel() {
  alignas(Elf64_Ehdr) unsigned char image[sizeof(Elf64_Ehdr)] = {};
  std::memcpy(image, ELFMAG, SELFMAG);
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  check(hipModuleLoadData(&module, image), "hipModuleLoadData");
  check(hipModuleGetFunction(&function, module, "weir_fill_i32"), "hipModuleGetFunction");
  return function;
}

std::atomic<int> g_ended{0};

struct Program {
  hipFunction_t fill = fill_kernel();
  int launched = 0, most = 0;

  void fill_with(int* to, int value, hipStream_t stream, bool is_by_module) const {
    weir::KernelArguments arguments{};
    arguments.operands[0] = to;
    arguments.dims[0] = kCount;
    arguments.scalars[0] = static_cast<float>(value);
    void* parameters[] = {&arguments};
    if (is_by_module)
      check(hipModuleLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), "hipModuleLaunchKernel");
    else
      check(hipLaunchKernel(fill, dim3(1), dim3(1), parameters, 0, stream), "hipLaunchKernel");
  }

  // The host function behind each command may run a little later than a mark there is reached.
  void launch(int i, int* device, int* host, hipStream_t stream) {
    if (i % 4 == 3)
      check(hipMemcpyAsync(host, device, sizeof(int) * kCount, hipMemcpyDeviceToHost, stream), "hipMemcpyAsync");
    else
      fill_with(device, i, stream, i % 2 == 0);
    ++launched;
    most = std::max(most, launched - g_ended.load());
    check(hipLaunchHostFunc(stream, [](void*) { g_ended.fetch_add(1); }, nullptr), "hipLaunchHostFunc");
  }

  void run(int count, hipStream_t stream) {
    void *device = nullptr, *host = nullptr;
    check(hipMalloc(&device, sizeof(int) * kCount), "hipMalloc");
    check(hipHostMalloc(&host, sizeof(int) * kCount, 0), "hipHostMalloc");
    for (int i = 0; i < count; ++i) launch(i, static_cast<int*>(device), static_cast<int*>(host), stream);
    check(hipStreamSynchronize(stream), "hipStreamSynchronize");
    const int expected = (count - 1) / 4 * 4 + 2;  // of the last fill before the last copy, where count % 4 == 0
    const auto* const values = static_cast<int*>(host);
    const bool is_right = std::all_of(values, values + kCount, [&](int value) { return value == expected; });
    std::puts(is_right ? "values right" : "values wrong");
  }
};

void capture(Program& program, int count) {
  hipStream_t stream = nullptr;
  check(hipStreamCreateWithPriority(&stream, 0, 0), "hipStreamCreateWithPriority");
  void* device = nullptr;
  check(hipMalloc(&device, sizeof(int) * kCount), "hipMalloc");
  check(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), "hipStreamBeginCapture");
  for (int i = 0; i < count; ++i) program.fill_with(static_cast<int*>(device), i, stream, i % 2 == 0);
  hipGraph_t graph = nullptr;
  check(hipStreamEndCapture(stream, &graph), "hipStreamEndCapture");
  hipGraphExec_t exec = nullptr;
  check(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0), "hipGraphInstantiate");
  for (int i = 0; i < 5; ++i) check(hipGraphLaunch(exec, stream), "hipGraphLaunch");
  check(hipStreamSynchronize(stream), "hipStreamSynchronize");
  std::puts("graph ran");
}

}  // namespace

int main(int argc, char** argv) {
  check(hipInit(0), "hipInit");
  Program program;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const int count = i + 1 < argc ? std::atoi(argv[i + 1]) : 0;
    if (word == "run") {
      hipStream_t stream = nullptr;
      check(hipStreamCreateWithPriority(&stream, 0, 0), "hipStreamCreateWithPriority");
      program.run(count, stream);
    } else if (word == "default") {
      program.run(count, nullptr);
    } else if (word == "capture") {
      capture(program, count);
    } else if (word == "fails") {
      for (int n = 0; n < 20; ++n)
        if (hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != hipErrorInvalidValue)
          return 8;
      std::puts("failed as they should");
    }
  }
  std::printf("most %d\n", program.most);
  return 0;
}
