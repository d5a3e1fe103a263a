// What memory a call of the CUDA driver touches, as far as its arguments say: exact for copies and sets; of kernels,
// every aligned word among the parameters that points into memory which is known. Launches nothing.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <vector>

#include "submit/inject/cupti_functions.h"
#include "submit/inject/race_memory.h"
#include "trace/race_format.h"

namespace weir::inject {

struct RaceAccesses {
  std::vector<race_format::Access> list;
  bool is_synchronous = false;  // the host waits for the end of the command
};

// Replaces what is in `accesses`. `is_captured`: pageable memory is read later, and nothing is waited for. Without the
// run's mutex.
void find_accesses(const CudaFunction& function, const void* arguments, bool is_captured, RaceAccesses& accesses);
// When handles and addresses may have become others'.
void forget_kernels_parameters() noexcept;

// What a call allocated or released when it succeeded.
struct RaceBlock {
  bool is_one = false, is_release = false;
  bool waits_for_device = false;
  RaceMemory::Block block;  // a release: without its size
};
RaceBlock block_of(const CudaFunction& function, const void* arguments) noexcept;

}  // namespace weir::inject
