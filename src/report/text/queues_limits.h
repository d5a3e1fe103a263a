// The limits of a device's queues as text for a terminal of 80 columns. Reads documents only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// A weir.queues/1 document with the member "limits".
std::string describe_limits(const Json& document);

}  // namespace weir
