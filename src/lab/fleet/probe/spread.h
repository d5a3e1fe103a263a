// What another probe of the same device may show. Knows samples and names of figures, not their origin.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "measure/bootstrap.h"

namespace weir::fleet {

// Nothing for fewer than three samples. docs/fleet.md, "What is measured", has the formula.
std::optional<Interval> stated_range(std::string_view figure, std::span<const double> samples);

}  // namespace weir::fleet
