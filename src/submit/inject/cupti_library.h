// CUPTI as it is found in a program of somebody else: opened at run time, because the copy that such a program brings
// is the one that fits it.
#pragma once

#include <string>

namespace weir::inject {

// Null, with what the loader said, where there is none. WEIR_CUPTI_LIBRARY can name it.
void* open_cupti(std::string& reason);

}  // namespace weir::inject
