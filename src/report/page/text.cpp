// Documents without a picture, as `weir` prints them in the terminal; and their warnings.
#include <fmt/format.h>

#include <algorithm>

#include "base/named_values.h"
#include "report/page/list.h"
#include "report/text/documents.h"
#include "report/text/fields.h"
#include "report/text/sections.h"

namespace weir::page {
namespace {

using namespace fields;

constexpr std::size_t kMaxRows = 2'000;           // of a table
constexpr std::size_t kLongestPlain = 64 * 1024;  // of a text in columns
constexpr std::size_t kMaxWarnings = 50, kLongestKernel = 60;

Json table_json(const ReportTable& table) {
  Json json = {{"columns", Json::array()}, {"rows", Json::array()}, {"after", table.after}};
  for (const ReportTable::Column& column : table.columns)
    json["columns"].push_back(WEIR_NAMED(column.heading, column.is_text));
  for (std::size_t i = 0; i < std::min(table.rows.size(), kMaxRows); ++i) json["rows"].push_back(table.rows[i]);
  if (table.rows.size() > kMaxRows)
    json["after"] = fmt::format("{} of {} rows are shown. {}", kMaxRows, table.rows.size(), table.after);
  return json;
}

Json section_json(const ReportSection& section) {
  Json json = {{"title", section.title}, {"facts", Json::array()}, {"tables", Json::array()}};
  for (const auto& [label, value] : section.facts) json["facts"].push_back(Json::array({label, value}));
  for (const ReportTable& table : section.tables) json["tables"].push_back(table_json(table));
  json["remarks"] = section.remarks;
  return json;
}

// Of a text whose first line is its title; without the blank lines that follow it.
Json lines_below_title(const std::string& text) {
  Json lines = Json::array();
  std::size_t kept = 0;
  for (std::size_t begin = text.find_first_not_of('\n', text.find('\n')); begin < text.size();) {
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
  for (const Json& race : first(list(document, {"races"}), kMaxWarnings)) {
    const auto end = [&](const char* which, const char* otherwise) {
      const std::string label = one_of(at(race, {which}), {"label"});
      return label.empty() ? otherwise
                           : fmt::format("{} ({}, {})", short_kernel_name(label, kLongestKernel),
                                         text(race, {which, "command"}), text(race, {which, "stream"}));
    };
    page.find({Tone::bad, 1,
               fmt::format("Nothing orders {} and {}, and the output depends on which comes first.",
                           end("first", "a command"), end("second", "the host")),
               one_of(race, {"missing"}), anchor});
  }
  for (const Json& warning : first(list(document, {"warnings"}), kMaxWarnings)) {
    const std::string words = warning.is_string() ? warning.get<std::string>() : one_of(warning, {"message", "text"});
    if (!words.empty())
      page.find({Tone::warning, 0.05, fmt::format("{}: {}{}", title, words, words.ends_with('.') ? "" : "."),
                 one_of(warning, {"advice"}), anchor});
  }
}

}  // namespace

void section_list::text(Page& page, std::size_t source, const Json& document) {
  const std::string schema = fields::text(document, {"schema"});
  TextFunction* const text_of = text_function(schema);
  if (text_of == nullptr) return;
  const DocumentText text = text_of(document);
  const auto* const plain = std::get_if<std::string>(&text);
  if (plain != nullptr && plain->empty()) return;
  const TextReport report =
      plain != nullptr ? TextReport{plain->substr(0, plain->find('\n'))} : std::get<TextReport>(text);
  const std::string title = report.title.empty() ? schema : report.title;
  Json item = page.item("texts", title, source, page.environment_of(source));
  item["opening"] = report.opening;
  item["sections"] = json_list(report.sections, section_json);
  item["plain"] = plain != nullptr ? lines_below_title(*plain) : Json::array();
  find_in(page, document, title, page.add("texts", std::move(item)));
}

}  // namespace weir::page
