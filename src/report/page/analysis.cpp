// weir.analysis/1: what `weir analyze` found in a trace.
#include "report/page/analysis_items.h"
#include "report/page/list.h"
#include "report/page/values.h"

namespace weir::page {

void section_list::analysis(Page& page, std::size_t source, const Json& document) {
  const Json& files = values::list(document, {"files"});
  const std::string name = files.empty() ? "analysis" : values::word(files.front(), {"name"}, "analysis");
  add_analysis(page, source, name, document, "", {});
}

}  // namespace weir::page
