// Shortens the log of a device-code compiler to fit into a message. Knows no compiler.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// Returns the first non-blank lines of a compiler's log, each indented.
std::string first_log_lines(std::string_view log, int max_lines = 12);

}  // namespace weir
