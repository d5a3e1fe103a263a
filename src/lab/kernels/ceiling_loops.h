// Loops that only multiply and add, as wide as this CPU can, or only move memory: they reach the CPU's peak rates.
// Knows instructions; never a clock or a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lab/kernels/package/package.h"

namespace weir::bench {

struct FmaLoop {
  double (*run)(std::uint64_t rounds) = nullptr;  // null: none; the result only keeps the loop from being removed
  double flop_per_round = 0;
  std::string how;  // which instructions, or why there is none
};
FmaLoop fma_loop(Precision precision);

// to = a + 3 b, by one thread.
void triad(double* to, const double* a, const double* b, std::size_t count);

}  // namespace weir::bench
