// weir.amd_roadmap/1: the queue roadmap's targets and checklist, then the comparison that they rest on.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

std::string measured_text(const Json& target) {
  const std::string unit = text(target, {"unit"});
  const auto words = [&](double value) {
    return unit == "ns"    ? format_duration(value)
           : unit == "1/s" ? format_quantity(value) + "/s"
                           : fmt::format("{:.0f}", value);
  };
  const auto p99 = number(target, {"measured", "p99"}), largest = number(target, {"measured", "max"});
  const auto p50 = number(target, {"measured", "p50"});
  if (p99 && largest) return fmt::format("p99 {}, max {}", words(*p99), words(*largest));
  if (largest) return words(*largest);
  return p50 ? words(*p50) : "-";
}

std::string plain(std::string words) {
  for (char& c : words)
    if (c == '_') c = ' ';
  return words;
}

}  // namespace

TextReport amd_roadmap_report(const Json& document) {
  TextReport report{"Queue roadmap"};
  report.open("A: {}", text(document, {"a"}));
  report.open("B: {}", text(document, {"b"}));
  ReportSection& targets = report.section("Targets");
  ReportTable& table =
      targets.table({{"case", true}, {"target", true}, {"wanted", true}, {"measured", true}, {"outcome", true}});
  std::vector<std::pair<std::string, std::string>> reasons;  // of which targets, and what
  for (const Json& row : list(document, {"targets"})) {
    const std::string side = text(row, {"side"}) == "a" ? "A" : "B";
    const std::string name = plain(text(row, {"name"}));
    // Classes are many words, which the reason repeats.
    table.rows.push_back({side, name, name == "kernel classes" ? "see below" : text(row, {"limit"}), measured_text(row),
                          plain(text(row, {"outcome"}))});
    // Several targets often have one reason: what is not there.
    const std::string because = text(row, {"because"});
    const auto same =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& each) { return each.second == because; });
    if (same == reasons.end())
      reasons.emplace_back(side + ", " + name, because);
    else
      same->first += fmt::format("; {}, {}", side, name);
  }
  for (const auto& [which, because] : reasons) targets.remark("{}: {}.", which, because);
  for (const char* phase : {"1", "2"}) {
    ReportSection& section =
        report.section(fmt::format("Phase {}{}", phase, *phase == '2' ? ": before it begins" : ""));
    for (const Json& row : list(document, {"checklist"})) {
      if (text(row, {"phase"}) != phase) continue;
      const std::string state = text(row, {"state"});
      section.remark("[{}] {}: {}",
                     state == "done"       ? "x"
                     : state == "not_seen" ? " "
                                           : "?",
                     text(row, {"item"}), text(row, {"because"}));
    }
  }
  report.sections.back().remark("[x] done, [ ] not seen, [?] cannot be seen in these captures.");
  if (const Json& comparison = at(document, {"comparison"}); comparison.is_object()) {
    for (ReportSection& section : amd_compare_report(comparison).sections)
      report.sections.push_back(std::move(section));
  } else {
    report.section("Comparison").remark("None: {}.", text(document, {"comparison_reason"}));
  }
  return report;
}

DocumentText text_list::amd_roadmap(const Json& document) { return amd_roadmap_report(document); }

}  // namespace weir
