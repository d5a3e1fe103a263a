// The common start of all documents of the queue lab (weir.queues/2). Its JSON form is in
// docs/schema/weir.queues.2.json.
#pragma once

#include <string>
#include <string_view>

#include "run/runner.h"

namespace weir {

// `experiment`: map, limits, switch, cost, sweep, convoy, fairness. The caller adds a member of that name, and explains
// in "unavailable" why anything in it is null.
Json queues_document(std::string_view experiment, const DeviceInfo& info, const RunContext& context);
// Adds to the document's warnings.
void warn(Json& document, std::string_view kind, const std::string& text, std::string_view advice);

}  // namespace weir
