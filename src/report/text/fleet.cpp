// weir.fleet/1: how many nodes are fit, and what is wrong with the others.
#include <fmt/format.h>

#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {

DocumentText text_list::fleet(const Json& document) {
  using namespace fields;
  TextReport report{fmt::format("{} nodes, {} devices", text(document, {"nodes"}), text(document, {"devices"}))};
  ReportSection& section = report.section("Findings");
  for (const Json& finding : at(document, {"findings"})) section.remark(string(finding, {"sentence"}));
  return report;
}

}  // namespace weir
