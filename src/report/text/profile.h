// A profile (weir.profile/1) as text for a terminal. Reads the document only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

std::string describe_profile(const Json& document);

}  // namespace weir
