// weir.conformance/2: which cases devices passed.
#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

std::int64_t count_or_zero(const Json& json, const char* key) {
  return static_cast<std::int64_t>(number(json, {key}).value_or(0));
}

// Zeros are expected or uninteresting, so they are shown as a dash.
std::string count_cell(std::int64_t value) { return value == 0 ? "-" : std::to_string(value); }

void add_row(std::string& out, const std::string& name, const Json& counts) {
  out += fmt::format("  {:<16}{:>7}{:>9}{:>10}{:>9}{:>10}{:>12}\n", name, count_or_zero(counts, "cases"),
                     count_cell(count_or_zero(counts, "passed")), count_cell(count_or_zero(counts, "skipped")),
                     count_cell(count_or_zero(counts, "failed")), count_cell(count_or_zero(counts, "not_run")),
                     format_duration(number(counts, {"duration_ns"}).value_or(0)));
}

// Distinct texts of cases with that outcome, in order of appearance, with their counts.
std::vector<std::pair<std::string, int>> texts_of(const Json& device, const char* outcome) {
  std::vector<std::pair<std::string, int>> texts;
  std::map<std::string, std::size_t> places;
  for (const Json& each : at(device, {"cases"})) {
    if (text(each, {"outcome"}) != outcome) continue;
    const std::string words = text(each, {"text"});
    const auto [place, is_new] = places.try_emplace(words, texts.size());
    if (is_new) texts.emplace_back(words, 0);
    ++texts[place->second].second;
  }
  return texts;
}

void add_outcome_reasons(std::string& out, const Json& device, const char* outcome, const char* heading) {
  const auto texts = texts_of(device, outcome);
  if (texts.empty()) return;
  out += fmt::format("\n  {}\n", heading);
  for (const auto& [words, cases] : texts) out += fmt::format("  {:>6}  {}\n", cases, wrapped(words, 10));
}

std::string verdict(const Json& device) {
  const Json& counts = at(device, {"counts"});
  if (at(device, {"has_passed"}) == true)
    return fmt::format("{} passed: nothing failed in {} cases, {} of them skipped", text(device, {"device", "name"}),
                       count_or_zero(counts, "cases"), count_or_zero(counts, "skipped"));
  return fmt::format("{} has not passed: {} failed and {} not run of {} cases", text(device, {"device", "name"}),
                     count_or_zero(counts, "failed"), count_or_zero(counts, "not_run"), count_or_zero(counts, "cases"));
}

}  // namespace

std::string describe_conformance(const Json& device) {
  std::string out = fmt::format("weir conformance on {}\n  {}\n\n", text(device, {"device", "name"}),
                                wrapped(text(device, {"device", "model"}), 2));
  out += fmt::format("  {:<16}{:>7}{:>9}{:>10}{:>9}{:>10}{:>12}\n", "group", "cases", "passed", "skipped", "failed",
                     "not run", "time");
  for (const Json& group : at(device, {"groups"})) add_row(out, text(group, {"name"}), group);
  add_row(out, "all", at(device, {"counts"}));
  if (count_or_zero(at(device, {"counts"}), "failed") > 0) out += "\n  failed\n";
  for (const Json& each : at(device, {"cases"}))
    if (text(each, {"outcome"}) == "failed")
      out += fmt::format("    {}\n      {}\n", wrapped(text(each, {"group"}) + "/" + text(each, {"name"}), 4),
                         wrapped(text(each, {"text"}), 6));
  if (const Json& lost = at(device, {"lost"}); lost.is_string())
    out += fmt::format("\n  The device does not work any more: {}\n", wrapped(fields::text(lost, {}), 2));
  add_outcome_reasons(out, device, "skipped", "skipped, and why");
  add_outcome_reasons(out, device, "not_run", "not run");
  return out + "\n" + wrapped(verdict(device), 0) + "\n";
}

std::string conformance_summary(const Json& document) {
  std::string out;
  for (const Json& each : at(document, {"not_opened"}))
    out += fmt::format(
        "\n{}", wrapped(fmt::format("{} was not examined: {}", text(each, {"device"}), text(each, {"reason"})), 0));
  if (!out.empty()) out += '\n';
  const Json& devices = at(document, {"devices"});
  if (devices.size() > 1) {
    out += '\n';
    for (const Json& device : devices) out += wrapped(verdict(device), 0) + "\n";
  }
  if (text(document, {"status"}) == "interrupted") out += "\nInterrupted: the results so far are above.\n";
  return out;
}

DocumentText text_list::conformance(const Json& document) {
  std::string text = "weir conformance\n\n";
  for (const Json& device : at(document, {"devices"})) text += describe_conformance(device) + "\n";
  return text + conformance_summary(document);
}

}  // namespace weir
