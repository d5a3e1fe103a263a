// How far each access of a log probably reaches: kernels say where their memory begins, not where it ends. Knows
// allocations and pointers; knows no order.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/race/log.h"

namespace weir::race {

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t near_end = 0;  // exact ranges: their end; otherwise where the next pointer into the allocation begins
  std::uint64_t far_end = 0;   // some pointers further, at most the end of the allocation
  bool is_host = false;        // in host memory that the run allocated
  bool is_likely_output =
      false;  // of a kernel that, at this place among its pointers, was once the first in new memory
};

// By range. Memory that was released and allocated again is another allocation.
std::vector<Extent> extents_of(const Log& log);

}  // namespace weir::race
