// The map of streams and hardware queues as text: verdict, picture, how certain it is, who disagrees.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// `document` is that of `weir queues map`.
std::string describe_queue_map(const Json& document);

}  // namespace weir
