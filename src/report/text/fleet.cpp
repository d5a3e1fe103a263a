// weir.fleet/1: how many nodes are fit, and what is wrong with the others.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "lab/fleet/figures.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kMostFindings = 60, kMostDifferences = 20, kMostHolders = 4;

bool is_unfit_finding(const Json& finding) { return is_true(finding, {"is_unfit"}); }

std::string fleet_title(const Json& document) {
  std::size_t unfit = 0;
  for (const Json& verdict : list(document, {"verdicts"})) unfit += !is_true(verdict, {"is_fit"});
  const std::string all = fmt::format("{}, {}", counted(number(document, {"nodes"}).value_or(0), "node"),
                                      counted(number(document, {"devices"}).value_or(0), "device"));
  return unfit == 0 ? fmt::format("{}: all are fit", all) : fmt::format("{}: {} unfit", all, counted(unfit, "node"));
}

void add_fleet_findings(const Json& document, bool is_unfit, const char* heading, TextReport& report) {
  ReportSection section{heading};
  std::size_t more = 0;
  for (const Json& finding : list(document, {"findings"})) {
    if (is_unfit_finding(finding) != is_unfit) continue;
    if (section.remarks.size() < kMostFindings)
      section.remark(string(finding, {"sentence"}));
    else
      ++more;
  }
  if (more > 0) section.remark("{} more: --json has them all", more);
  if (!section.remarks.empty()) report.sections.push_back(std::move(section));
}

// Times as durations, rates as 50.0 GB/s, states as plain numbers.
std::string figure_value(const Json& figure, const char* key) {
  const auto value = number(figure, {key});
  const std::string unit = string(figure, {"unit"});
  if (!value) return "-";
  if (unit == "ns") return format_duration(*value);
  if (unit == "B/s" || unit == "flop/s") return format_quantity(*value) + unit;
  return fmt::format("{:.6g}{}{}", *value, unit == "count" ? "" : " ", unit == "count" ? "" : unit);
}

// A counter of errors that nobody has is not worth a line.
bool is_all_zero(const Json& figure) {
  return number(figure, {"min"}).value_or(1) == 0 && number(figure, {"max"}).value_or(1) == 0;
}

void add_fleet_groups(const Json& document, TextReport& report) {
  for (const Json& group : list(document, {"groups"})) {
    const std::string settings = string(group, {"settings"});
    const double devices = number(group, {"devices"}).value_or(0);
    const auto has_all = [&](const Json& figure) { return number(figure, {"count"}) == devices; };
    const Json& figures = list(group, {"figures"});
    const bool are_all = std::all_of(figures.begin(), figures.end(), has_all);
    ReportTable table{{{"figure", true}, {"p50"}, {"min"}, {"max"}, {"spread"}}};
    if (!are_all) table.columns.insert(table.columns.begin() + 1, {"devices"});
    for (const Json& figure : figures) {
      if (is_all_zero(figure)) continue;
      const fleet::FigureKind* const kind = fleet::find_figure(string(figure, {"name"}));
      table.rows.push_back({kind == nullptr ? text(figure, {"name"}) : std::string(kind->words)});
      std::vector<std::string>& row = table.rows.back();
      if (!are_all) row.push_back(count(figure, {"count"}));
      for (const char* const key : {"p50", "min", "max"}) row.push_back(figure_value(figure, key));
      row.push_back(percent(figure, {"spread"}));
    }
    report.add_unless_empty(fmt::format("{} of {}{}{}", counted(number(group, {"devices"}).value_or(0), "device"),
                                        text(group, {"model"}), settings.empty() ? "" : ", ", settings),
                            std::move(table));
  }
}

void add_fleet_differences(const Json& document, TextReport& report) {
  ReportTable table{{{"of", true}, {"what", true}, {"values", true}}};
  for (const Json& difference : first(list(document, {"differences"}), kMostDifferences)) {
    const Json& values = list(difference, {"values"});
    std::string held;
    for (const Json& value : first(values, kMostHolders))
      held += fmt::format("{}{} ({})", held.empty() ? "" : ", ", text(value, {"value"}), count(value, {"count"}));
    if (values.size() > kMostHolders) held += fmt::format(", {} more", values.size() - kMostHolders);
    table.rows.push_back(
        {is_true(difference, {"is_of_device"}) ? "devices" : "nodes", text(difference, {"name"}), held});
  }
  if (const std::size_t all = list(document, {"differences"}).size(); all > kMostDifferences)
    table.after = fmt::format("{} more: --json has them all", all - kMostDifferences);
  report.add_unless_empty("Not the same everywhere", std::move(table));
}

}  // namespace

DocumentText text_list::fleet(const Json& document) {
  TextReport report{fleet_title(document)};
  add_fleet_findings(document, true, "Unfit", report);
  add_fleet_findings(document, false, "Worth a look", report);
  add_fleet_groups(document, report);
  add_fleet_differences(document, report);
  ReportSection notes{"Notes"};
  for (const Json& note : list(document, {"notes"})) notes.remark(text(note, {}));
  if (!notes.remarks.empty()) report.sections.push_back(std::move(notes));
  return report;
}

}  // namespace weir
