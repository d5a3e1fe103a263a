// What a report shows of a weir.analysis/1 document, whether it came from a file or was just made of a trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "report/page/page.h"
#include "report/page/queue_grid.h"

namespace weir::page {

// By rank and the device's id: how many commands of each stream each queue ran, where more is known than the document
// says.
using CountedQueues = std::map<std::pair<std::int64_t, std::int64_t>, QueueGrid>;

// Waterfalls, queue maps, overlap and findings. `name` is for titles; `timeline` is the id of the item that findings
// lead to, or nothing.
void add_analysis(Page& page, std::size_t source, const std::string& name, const Json& document,
                  const std::string& timeline, CountedQueues counted);

}  // namespace weir::page
