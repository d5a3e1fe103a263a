// What stands out in a weir.analysis/1 document: the largest losses, each with its figure and what to do about it.
// Reads the document alone; what it leaves out is in the sections.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace weir {

// At most five, the largest share of a device's span first; of each kind the device that it costs most. Never empty
// where there is a device with times.
std::vector<std::string> findings(const Json& document);

}  // namespace weir
