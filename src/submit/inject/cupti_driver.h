// The CUDA driver's own functions, found in the library that the program has loaded, as the table of LaunchGate: what
// marks commands in other people's streams.
#pragma once

#include "submit/inject/launch_gate.h"

namespace weir::inject {

// Call first. Returns what is missing, or null.
const char* bind_cuda_driver() noexcept;
const GateDriver& cuda_driver() noexcept;
// Where the stream was created; null where that is not known.
Context context_with(void* stream) noexcept;
// The number of a context's device; -1 where the context cannot be entered.
int device_of(Context context) noexcept;

}  // namespace weir::inject
