// A sweep over queue counts as text: a matrix per kernel size, and which count is best. Reads the document only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// `document` is weir.queues/1 of the experiment sweep.
std::string describe_queues_sweep(const Json& document);

}  // namespace weir
