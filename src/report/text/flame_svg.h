// A flame graph of counted stacks as one SVG file: no script, nothing from outside; names show on hovering. Knows
// stacks; measures nothing.
#pragma once

#include <string>
#include <vector>

#include "measure/folded_stacks.h"

namespace weir {

// Frames too narrow to see are left out; `title` is the line above.
std::string flame_svg(const std::vector<FoldedStack>& stacks, const std::string& title);

}  // namespace weir
