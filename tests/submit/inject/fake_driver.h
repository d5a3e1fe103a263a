// What the fake CUDA driver exports besides CUDA: for its CUPTI, and for the programs of tests.
#pragma once

#include <cuda.h>

#include <cstdint>

extern "C" {
// Called around launches and what takes contexts away: with the function's CUPTI number, its arguments, and its result
// when it returns.
using FakeDriverHook = void (*)(std::uint32_t function, bool is_entry, const void* arguments, CUresult* result,
                                std::uint64_t* correlation);
void fake_driver_set_hook(FakeDriverHook hook);
// Which call submits, asked in its thread; and that a command of it has run, in the thread of its stream.
using FakeDriverSource = std::uint32_t (*)();
using FakeDriverEnded = void (*)(std::uint32_t correlation, CUstream stream, std::int64_t started_ns,
                                 std::int64_t ended_ns);
void fake_driver_set_records(FakeDriverSource source, FakeDriverEnded ended);

// A kernel: its one argument is how many microseconds it takes.
CUfunction fake_driver_kernel();
// Kernels of one order never run beside each other, and those with an index of 0 or more one after the other.
struct FakeDriverOrder {
  int next = 0;
  bool is_running = false, is_broken = false;
};
// Another kernel: its arguments are a duration, an order (FakeDriverOrder*), and its index there (int).
CUfunction fake_driver_ordered_kernel();
// How many kernels ran in a part of the device.
std::uint64_t fake_driver_in_part();
// The default stream of each thread: CUDA's headers declare these for themselves alone.
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                             void**, void**);
CUresult cuGraphLaunch_ptsz(CUgraphExec, CUstream);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void*, size_t, CUstream);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr, unsigned char, size_t, CUstream);

std::uint64_t fake_driver_ended();           // commands of the program
std::uint64_t fake_driver_most_on_device();  // at once
std::uint64_t fake_driver_events();          // that exist
// Whether RTLD_NEXT means what comes behind the library that asks: this one.
bool fake_driver_knows_next();
// What no caller of a driver may do, the first of it; empty: nothing.
const char* fake_driver_misuse();
}
