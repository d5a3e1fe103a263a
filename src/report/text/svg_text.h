// Text inside SVG pictures. Knows XML's rules; no picture.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// As character data or as an attribute's value. Names come from files: control characters are no XML, and bytes may be
// no UTF-8, so what is not printable ASCII becomes '?'.
std::string svg_escaped(std::string_view text);

}  // namespace weir
