// Who got how much of a full device, as text for a terminal of 80 columns. Reads documents only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// A weir.queues/1 document with the member "fairness".
std::string describe_fairness(const Json& document);

}  // namespace weir
