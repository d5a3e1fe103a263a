// What `weir conformance` found, as text for a terminal of 80 columns. Reads the document only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// One member of `devices`: a table by group, every failure with its explanation, every reason to skip with its count.
std::string describe_conformance(const Json& device);
// What is to be said about all devices together: those that could not be opened, and the verdict where there are
// several.
std::string conformance_summary(const Json& document);

}  // namespace weir
