// Compares computed with expected elements. Knows types; no kernel and no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/numeric.h"

namespace weir {

struct Difference {
  double error = 0;  // relative to the largest of |reference|, the range's rms, `natural`, the smallest normal number
  std::uint64_t element = 0;
  double got = 0, expected = 0;
};

// Returns the worst element. Errors are relative to at least `natural`: the size of the terms of a sum that may have
// cancelled. Integers must be equal.
Difference compare_elements(ElementType type, std::span<const std::byte> got, std::span<const std::byte> expected,
                            double natural = 0);

}  // namespace weir
