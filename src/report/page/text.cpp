// Documents without a picture, as `weir` prints them in the terminal; and their warnings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/named_values.h"
#include "report/page/list.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir::page {
namespace {

using namespace fields;

constexpr std::size_t kMostRows = 2'000;          // of a table
constexpr std::size_t kLongestPlain = 64 * 1024;  // of a text in columns
constexpr std::size_t kMostWarnings = 50;

struct Told {
  Report report;
  std::string plain;
};

Told in_sections(Report report) { return {std::move(report), {}}; }

// The first line is the title.
Told in_columns(std::string text) {
  Told told;
  const std::size_t end = std::min(text.find('\n'), text.size());
  told.report.title = text.substr(0, end);
  told.plain = text.substr(std::min(text.find_first_not_of('\n', end), text.size()));
  return told;
}

struct TextOf {
  std::string_view kind;  // a schema, or an experiment of weir.queues/1
  Told (*tell)(const Json& document);
};

// Selects by what the function returns: a text, a report, or a report with a full form.
template <auto tell>
Told text_by(const Json& document) {
  if constexpr (std::is_invocable_r_v<std::string, decltype(tell), const Json&>)
    return in_columns(tell(document));
  else if constexpr (std::is_invocable_v<decltype(tell), const Json&>)
    return in_sections(tell(document));
  else
    return in_sections(tell(document, false));
}

constexpr std::array kTellers = {
    TextOf{"weir.amd_capture/1",
           [](const Json& document) { return in_sections(capture_report(document, {}, "the folder")); }},
    TextOf{"weir.amd_compare/1", text_by<amd_compare_report>},
    TextOf{"weir.amd_ftrace/1", text_by<ftrace_report>},
    TextOf{"weir.amd_hqd/1", text_by<amd_hqd_report>},
    TextOf{"weir.amd_join/1", text_by<amd_join_report>},
    TextOf{"weir.amd_log/1", text_by<amd_log_report>},
    TextOf{"weir.channel/1", text_by<channel_report>},
    TextOf{"weir.analysis/1", text_by<analysis_report>},
    TextOf{"weir.overlap/1", text_by<overlap_report>},
    TextOf{"weir.overlap_tune/1", text_by<tune_report>},
    TextOf{"weir.sched_status/1", [](const Json& document) { return in_sections(sched_status_report(document)); }},
    TextOf{"weir.conformance/1",
           [](const Json& document) {
             std::string text = "weir conformance\n\n";
             for (const Json& device : at(document, {"devices"})) text += describe_conformance(device) + "\n";
             return in_columns(text + conformance_summary(document));
           }},
    TextOf{"weir.profile/1", text_by<describe_profile>},
    TextOf{"weir.trace_comparison/1", text_by<trace_comparison_text>},
    TextOf{"map", text_by<describe_queue_map>},
    TextOf{"limits", text_by<describe_limits>},
    TextOf{"switch", text_by<describe_switch>},
    TextOf{"cost", text_by<describe_queue_cost>},
    TextOf{"sweep", text_by<describe_queues_sweep>},
    TextOf{"convoy", text_by<describe_queues_convoy>},
    TextOf{"fairness", text_by<describe_fairness>},
};

Json table_json(const ReportTable& table) {
  Json json = {{"columns", Json::array()}, {"rows", Json::array()}, {"after", table.after}};
  for (const ReportTable::Column& column : table.columns)
    json["columns"].push_back(WEIR_NAMED(column.heading, column.is_text));
  for (std::size_t i = 0; i < std::min(table.rows.size(), kMostRows); ++i) json["rows"].push_back(table.rows[i]);
  if (table.rows.size() > kMostRows)
    json["after"] = fmt::format("{} of {} rows are shown. {}", kMostRows, table.rows.size(), table.after);
  return json;
}

Json section_json(const ReportSection& section) {
  Json json = {{"title", section.title}, {"facts", Json::array()}, {"tables", Json::array()}};
  for (const auto& [label, value] : section.facts) json["facts"].push_back(Json::array({label, value}));
  for (const ReportTable& table : section.tables) json["tables"].push_back(table_json(table));
  json["remarks"] = section.remarks;
  return json;
}

Json lines_of(const std::string& text) {
  Json lines = Json::array();
  std::size_t kept = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (kept + end - begin > kLongestPlain) {
      lines.push_back("... (cut: the document has more)");
      break;
    }
    kept += end - begin + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Different kinds of documents use different names for the same field.
std::string one_of(const Json& json, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const Json& value = at(json, {name}); value.is_string()) return value.get<std::string>();
  return {};
}

void find_in(Page& page, const Json& document, const std::string& title, const std::string& anchor) {
  if (one_of(document, {"status"}) == "failed") {
    const std::string why = one_of(document, {"failure", "reason"});
    page.find({Tone::bad, 1, fmt::format("{}: failed{}.", title, why.empty() ? "" : ": " + why),
               one_of(document, {"hint"}), anchor});
  }
  for (const Json& device : list(document, {"devices"}))
    if (at(device, {"has_passed"}) == Json(false))
      page.find(
          {Tone::bad, 1,
           fmt::format("{} did not pass the conformance cases: {} failed of {}.", text(device, {"device", "name"}),
                       text(device, {"counts", "failed"}), text(device, {"counts", "cases"})),
           "Do not trust its numbers; each failure is explained below.", anchor});
  for (const Json& warning : first(list(document, {"warnings"}), kMostWarnings)) {
    const std::string words = warning.is_string() ? warning.get<std::string>() : one_of(warning, {"message", "text"});
    if (!words.empty())
      page.find({Tone::warning, 0.05, fmt::format("{}: {}.", title, words), one_of(warning, {"advice"}), anchor});
  }
}

}  // namespace

void section_list::text(Page& page, std::size_t source, const Json& document) {
  const std::string schema = fields::text(document, {"schema"});
  const std::string kind = schema == "weir.queues/1" ? fields::text(document, {"experiment"}) : schema;
  const auto teller =
      std::find_if(kTellers.begin(), kTellers.end(), [&](const TextOf& each) { return each.kind == kind; });
  if (teller == kTellers.end()) return;
  const Told told = teller->tell(document);
  const std::string title = told.report.title.empty() ? schema : told.report.title;
  Json item = page.item("texts", title, source, page.environment_of(source));
  item["opening"] = told.report.opening;
  item["sections"] = json_list(told.report.sections, section_json);
  item["plain"] = lines_of(told.plain);
  find_in(page, document, title, page.add("texts", std::move(item)));
}

}  // namespace weir::page
