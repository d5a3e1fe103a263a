// Text in columns for people. Knows no result.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

inline constexpr std::size_t kReportColumns = 80;

// Breaks at blanks; all lines begin at `column`, where the first one stands already.
std::string wrapped(std::string_view text, std::size_t column);

}  // namespace weir
