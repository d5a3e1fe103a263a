// What `weir race` needs of the CUDA driver inside a program, found in the library that the program has loaded: its own
// questions, and its own kernels, which wait and which hash. None of these calls is the program's.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "submit/inject/cupti_driver.h"

namespace weir::inject {

struct RaceDriver {
  // Since CUDA 12.4, else null. The last: of kernels of libraries.
  CUresult (*parameter)(CUfunction, std::size_t, std::size_t*, std::size_t*) = nullptr;
  CUresult (*library_parameter)(CUkernel, std::size_t, std::size_t*, std::size_t*) = nullptr;
  CUresult (*function_name)(const char**, CUfunction) = nullptr;  // since CUDA 12.3, else null
  CUresult (*kernel_name)(const char**, CUkernel) = nullptr;
  CUresult (*address_range)(CUdeviceptr*, std::size_t*, CUdeviceptr) = nullptr;
  CUresult (*pointer)(void*, CUpointer_attribute, CUdeviceptr) = nullptr;
  CUresult (*stream_flags)(CUstream, unsigned*) = nullptr;
  CUresult (*stream_id)(CUstream, unsigned long long*) = nullptr;  // null: an old driver
  CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
  CUresult (*capture)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*, const CUgraphNode**,
                      std::size_t*) = nullptr;
  CUresult (*current)(CUcontext*) = nullptr;
  CUresult (*load)(CUmodule*, const void*) = nullptr;
  CUresult (*function)(CUfunction*, CUmodule, const char*) = nullptr;
  CUresult (*load_function)(CUfunction) = nullptr;  // since CUDA 12.4, else null
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                     void**) = nullptr;
  CUresult (*record)(CUevent, CUstream) = nullptr;
  CUresult (*wait)(CUstream, CUevent, unsigned) = nullptr;
  CUresult (*synchronize)() = nullptr;
  CUresult (*pin)(void*, std::size_t, unsigned) = nullptr;
  CUresult (*device_address)(CUdeviceptr*, void*, unsigned) = nullptr;
  CUresult (*error_name)(CUresult, const char**) = nullptr;
};

// Call first. Returns what is missing, or null.
const char* bind_race_driver() noexcept;
bool has_race_driver() noexcept;
const RaceDriver& race_driver() noexcept;
// CUDA error 700 (CUDA_ERROR_ILLEGAL_ADDRESS)
std::string describe_answer(CUresult result);

struct RaceKernels {
  CUfunction delay = nullptr;  // of nanoseconds
  CUfunction hash = nullptr;   // of a range, for a RaceSlot
};
// Of a context that is visited, loaded when first wanted. Returns why there are none, or empty. This and what follows
// throw only when memory runs out.
std::string find_race_kernels(CUcontext context, RaceKernels& kernels);
void forget_race_kernels() noexcept;  // before contexts end

// Where the device writes a hash, in pinned memory of this library, which stays when the driver is gone.
struct RaceSlot {
  volatile std::uint64_t hash = 0, is_done = 0;
  // The device writes the hash first.
  bool is_ready() const noexcept {
    const bool is = is_done != 0;
    std::atomic_thread_fence(std::memory_order_acquire);
    return is;
  }
};
// Null with the reason. In a context that is visited.
RaceSlot* new_race_slot(std::string& reason);

// Both return why it was not done, or empty. In a context that is visited.
std::string launch_delay(CUcontext context, CUstream stream, std::int64_t ns);
std::string launch_hash(CUcontext context, CUstream stream, std::uint64_t begin, std::uint64_t bytes, RaceSlot* slot);
// The same of memory of the host.
std::uint64_t hash_of_memory(const void* memory, std::size_t bytes) noexcept;

}  // namespace weir::inject
