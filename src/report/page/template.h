// The page that the front end (web/) was built into, as CMake embedded it. Knows nothing of what is put into it.
#pragma once

#include <string_view>

namespace weir::page {

// One HTML file with `__WEIR_DOCUMENT__` where the document goes. Empty where there was no npm when this was built.
std::string_view page_template();

}  // namespace weir::page
