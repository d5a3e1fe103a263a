#include "report/page/baseline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "report/history/engine.h"
#include "report/history/items.h"
#include "report/page/list.h"
#include "report/page/values.h"
#include "report/text/comparison.h"
#include "run/compare.h"

namespace weir::page {
namespace {

std::string reason_of(const Error& error) {
  return error.hint.empty() ? error.what() : fmt::format("{}. {}", error.what(), error.hint);
}

// Reports the last change of a series.
void find_change(Page& page, const Json& series, const std::string& anchor) {
  const Json& changes = values::list(series, {"changes"});
  const Json& points = values::list(series, {"points"});
  if (changes.empty()) return;
  const Json& last = changes.back();
  const auto ratio = values::amount(last, {"ratio"});
  const auto index = values::amount(last, {"index"});
  if (!ratio || *ratio <= 0 || !index || *index >= static_cast<double>(points.size())) return;
  const Json& point = points[static_cast<std::size_t>(*index)];
  const bool is_slower = values::word(last, {"verdict"}) == "slower";
  page.find({is_slower ? Tone::warning : Tone::good, 1 - std::min(*ratio, 1 / *ratio),
             fmt::format("{}: {} since {} (commit {}): its median {} is {:.3f} times what it was.",
                         values::word(series, {"title"}), is_slower ? "slower" : "faster",
                         values::word(point, {"at"}, "an unknown time"), values::word(point, {"commit"}, "unknown"),
                         values::word(series, {"metric"}, "value"), *ratio),
             is_slower ? "Compare results from before and after that commit: `weir compare`." : "", anchor});
}

}  // namespace

void add_baseline(Page& page, const std::filesystem::path& baseline, const std::vector<Measured>& measured) {
  std::vector<ResultFile> tests;
  std::size_t source = Page::kNoSource;
  for (const Measured& each : measured) {
    if (tests.empty() || each.source != source) tests.push_back({each.path, {}, {}});
    source = each.source;
    tests.back().points.push_back(each.point);
  }
  if (tests.empty()) {
    page.refuse(baseline.string(), "there is no result to compare with this baseline.");
    return;
  }
  const ResultFile before = load_results(baseline);
  // One at a time, so that a file without a partner does not prevent the other comparisons.
  for (const ResultFile& test : tests) {
    try {
      const Comparison comparison = compare_results(before, std::span(&test, 1));
      section_list::comparison(page, Page::kNoSource, comparison_json(comparison, false));
    } catch (const Error& error) {
      page.refuse(fmt::format("{} against {}", test.name, baseline.string()), reason_of(error));
    }
  }
}

void add_history(Page& page, const std::string& where, const std::vector<std::string>& machines) {
  std::vector<Json> items;
  if (machines.empty()) items = history::history_items(where);
  for (const std::string& machine : machines)
    for (Json& each : history::history_items(where, {.machine = machine})) items.push_back(std::move(each));
  const std::size_t source =
      page.add_source(history::is_postgres(where) ? history::without_password(where) : where, "weir history", Json());
  for (Json& series : items) {
    const Json device = values::object(series, {"device"}), environment = values::object(series, {"environment"});
    const auto index = device.empty() && environment.empty() ? std::nullopt : page.environment(device, environment);
    Json item = page.item("histories", values::word(series, {"title"}), source, index);
    for (const auto& [name, value] : series.items())
      if (name != "title" && name != "device" && name != "environment") item[name] = value;
    if (const Json serial = values::word_or_null(device, {"serial"}); serial.is_string()) item["serial"] = serial;
    find_change(page, series, page.add("histories", std::move(item)));
  }
}

}  // namespace weir::page
