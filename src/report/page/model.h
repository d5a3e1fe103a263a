// What a device worked for in the words of a model, as an item of a report: phases, steps, modules, operators by shapes
// with their efficiency.
#pragma once

#include <cstddef>
#include <string>

#include "report/page/page.h"

namespace weir::page {

// `device` is one of weir.analysis/2; `title` names it. Returns the item's id; empty where the document has nothing of
// the kind.
std::string add_model(Page& page, std::size_t source, const std::string& title, const Json& device);

}  // namespace weir::page
