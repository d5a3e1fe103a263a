// HIP as LaunchGate and StreamMarks use it: events behind a program's commands, and whose commands a stream's are. HIP
// has a device where CUDA has a context. Knows neither the scheduler nor the recorder.
#pragma once

#include "submit/inject/hip_library.h"
#include "submit/inject/launch_gate.h"

namespace weir::inject {

// The handle of a device's default stream where null would mean an unknown stream; hipStreamLegacy of newer versions.
inline void* const kHipDefaultStream = reinterpret_cast<void*>(1);

// Never null.
inline Context context_on(int device) noexcept {
  return reinterpret_cast<Context>(static_cast<std::intptr_t>(device) + 1);
}

// Null, or the name of a function without which nothing can be marked.
const char* missing_in_hip() noexcept;

// For the scheduler, which manages one device, the first that the program sees; and for all devices.
const GateDriver& first_device_driver() noexcept;
const GateDriver& all_devices_driver() noexcept;

// These may be called before and after a call of the program that has succeeded; -1: unknown.
int current_device() noexcept;
int device_of_stream(void* stream) noexcept;
// Whether commands in that stream become part of a graph.
bool is_captured(void* stream) noexcept;
// Mangled, or null. `kernel`: a hipFunction_t, or the address of the host's function of the same name.
const char* name_of_kernel(const void* kernel, bool is_host_function, void* stream) noexcept;

}  // namespace weir::inject
