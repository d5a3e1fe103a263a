// libweir_cupti.so: lives in other people's CUDA programs, which the driver loads it into (CUDA_INJECTION64_PATH).
// Starts what the environment asks for, and nothing else; such a program never fails for it.
#include <cstdio>

#include "submit/inject/cupti_library.h"

// What the driver calls when it starts. Anything but 1 would be an error of the program's.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    weir::inject::start_capture();
  } catch (...) {
    std::fputs("weir: the program is not profiled: out of memory\n", stderr);
  }
  weir::inject::start_gate();
  return 1;
}
