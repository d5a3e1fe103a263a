// How far what was computed is from what should have been, element by element. Knows types; no kernel and no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/numeric.h"

namespace weir {

struct Difference {
  double error = 0;  // relative to the largest of |reference|, the range's root mean square, the least normal number
  std::uint64_t element = 0;
  double got = 0, expected = 0;
};

// The worst element of all. Errors are relative to `natural` at least: the size of what was added up, where it may have
// cancelled. Integers must be equal.
Difference compare_elements(ElementType type, std::span<const std::byte> got, std::span<const std::byte> expected,
                            double natural = 0);

}  // namespace weir
