// Where commands spend their time, hop by hop, as items of a report. Knows the waterfalls of weir.analysis/1 and
// weir.profile/1.
#pragma once

#include <string>

#include "report/page/page.h"

namespace weir::page {

// One item for each class in `classes`; `where` names the device. Returns the first one's id, or nothing.
std::string add_waterfalls(Page& page, std::size_t source, const std::string& where, const Json& classes);

}  // namespace weir::page
