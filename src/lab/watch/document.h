// A sample as a document (weir.watch/1). Unknown values are null, with the reason beside them.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "lab/watch/sample.h"

namespace weir::watch {

// `created`: wall time, ISO 8601.
Json watch_document(const Sample& sample, std::int64_t interval_ns, const std::string& created);

}  // namespace weir::watch
