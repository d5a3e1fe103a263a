// The fake CUDA driver's memory, and kernels that read and write it: what `weir race` needs of a driver.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>

struct FakeWork {
  int us = 0;
  std::function<void()> body = nullptr;
};

// fake_driver.cpp, for fake_memory.cpp.
CUresult fake_driver_submit(CUstream stream, FakeWork work);
bool fake_driver_spoils_a_capture();

// fake_memory.cpp, for fake_driver.cpp: what a kernel of its own does; without a body: it is none of them. And a word
// about a stream, in the order of the calls.
FakeWork fake_memory_kernel(CUfunction function, void** parameters);
void fake_memory_note(std::uint64_t stream, const std::string& word);

extern "C" {
// A kernel (int us, int* from, struct { int* to; long count; }): after its time, *to = *from + 1.
struct FakeTarget {
  int* to = nullptr;
  long count = 0;
};
CUfunction fake_driver_moving_kernel();
// Memory of a module, of which no call says anything.
int* fake_driver_global();
// stream 13: k10 delay 400000 k20, for each stream that was used, a line each. Valid until the next call.
const char* fake_driver_journal();
}
