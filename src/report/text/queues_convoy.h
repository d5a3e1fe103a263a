// Small kernels alone, beside and behind large ones, as text. Reads the document only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// `document` is weir.queues/1 of the experiment convoy.
std::string describe_queues_convoy(const Json& document);

}  // namespace weir
