// What a compiler of device code said, short enough for a message. Knows no compiler.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// The first lines of a compiler's log, each indented; what follows from them is left out.
std::string first_complaints(std::string_view log, int most_lines = 12);

}  // namespace weir
