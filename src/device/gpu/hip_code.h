// The device code for AMD GPUs that this program carries.
#pragma once

#include <string>

namespace weir {

// Unpacks it on the first call. Null with a reason where it is damaged. Lives as long as the program.
const void* hip_code(std::string* reason);

}  // namespace weir
