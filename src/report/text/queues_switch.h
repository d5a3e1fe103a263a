// What hops and false serialisation cost, as text for a terminal of 80 columns. Reads documents only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// A weir.queues/1 document with the member "switch".
std::string describe_switch(const Json& document);

}  // namespace weir
