// The page that the front end (web/) was built into, as embedded by CMake. Does not know what is put into it.
#pragma once

#include <string_view>

namespace weir::page {

// One HTML file with `__WEIR_DOCUMENT__` in place of the document. Empty where npm was not available at build time.
std::string_view page_template();

}  // namespace weir::page
