// How often the program called its operators: an operator may call the driver several times. Knows no names.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// The operator that made this call of the driver; kNoOperation where none did, or none with a name.
std::uint32_t operator_of(const Timeline& timeline, std::uint32_t call) noexcept;

// By call of the driver: whether it is the first one of its operator's call that gave the device work. None is where
// the source does not say which calls are an operator's first.
std::vector<bool> operator_calls(const Timeline& timeline);

}  // namespace weir
