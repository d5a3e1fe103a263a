// Loops that do nothing but multiply and add, as wide as this CPU can, or nothing but move memory: what it reaches at
// best. Knows instructions; never a clock or a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lab/kernels/package/package.h"

namespace weir::bench {

struct FmaLoop {
  double (*run)(std::uint64_t rounds) = nullptr;  // null: there is none; the result is of no use but to the compiler
  double flop_per_round = 0;
  std::string how;  // which instructions; why there is none
};
FmaLoop fma_loop(Precision precision);

// to = a + 3 b, by one thread.
void triad(double* to, const double* a, const double* b, std::size_t count);

}  // namespace weir::bench
