// What queues cost a step, as text: where the time goes, what other counts would do, one sentence of advice.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// `document` is that of `weir queues cost`.
std::string describe_queue_cost(const Json& document);

}  // namespace weir
