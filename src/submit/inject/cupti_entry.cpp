// libweir_cupti.so: runs inside other people's CUDA programs, into which the driver loads it (CUDA_INJECTION64_PATH).
// Starts what the environment asks for, and nothing else; such a program never fails because of it.
#include <cstdio>

#include "submit/inject/cupti_library.h"

// The driver calls this when it starts. Any result except 1 would be an error in the program.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    weir::inject::start_capture();
    weir::inject::start_record();
    weir::inject::start_race();
  } catch (...) {
    std::fputs("weir: the program is not profiled: it is out of memory\n", stderr);
  }
  weir::inject::start_gate();
  return 1;
}
