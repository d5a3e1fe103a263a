#include "report/page/waterfall.h"

#include <fmt/format.h>

#include "base/units.h"
#include "report/page/values.h"

namespace weir::page {
namespace {

constexpr std::size_t kMostClasses = 16, kMostHops = 32;

Json hop_item(const Json& hop) {
  return {{"from", values::word(hop, {"from"}, "?")},    {"to", values::word(hop, {"to"}, "?")},
          {"count", values::count(hop, {"count"})},      {"mean_ns", values::duration(hop, {"mean_ns"})},
          {"p50_ns", values::duration(hop, {"p50_ns"})}, {"p95_ns", values::duration(hop, {"p95_ns"})},
          {"p99_ns", values::duration(hop, {"p99_ns"})}, {"share", number_or_null(values::amount(hop, {"share"}, 1))}};
}

// {"enqueued": "why"} in an analysis, [{"stage": "enqueued", "reason": "why"}] in a profile.
Json missing_items(const Json& missing) {
  Json items = Json::array();
  if (missing.is_object()) {
    for (const auto& [stage, reason] : missing.items())
      if (reason.is_string() && items.size() < kMostHops) items.push_back({{"hop", stage}, {"reason", reason}});
  } else if (missing.is_array()) {
    for (const Json& each : missing)
      if (items.size() < kMostHops && values::at(each, {"stage"}).is_string())
        items.push_back({{"hop", values::word(each, {"stage"})}, {"reason", values::word(each, {"reason"})}});
  }
  return items;
}

// Which hop takes longest, up to the command's end where that is known: the host may look long after.
std::string dominating_words(const Json& each) {
  for (const char* key : {"words_to_end", "dominating_to_end_words", "words", "dominating_words"})
    if (const std::string words = values::word(each, {key}); !words.empty()) return words;
  return {};
}

}  // namespace

std::string add_waterfalls(Page& page, std::size_t source, const std::string& where, const Json& classes) {
  std::string first;
  std::size_t added = 0;
  if (!classes.is_array()) return first;
  for (const Json& each : classes) {
    const Json& hops = values::list(each, {"hops"});
    if (hops.empty() || ++added > kMostClasses) continue;
    const std::string kind = values::word(each, {"kind"}, "command");
    Json item =
        page.item("waterfalls", fmt::format("{}: the way of a {}", where, kind), source, page.environment_of(source));
    item["kind"] = kind;
    item["commands"] = values::count(each, {"commands"});
    item["way_ns"] = values::duration(each, {"way_ns"});
    item["hops"] = Json::array();
    for (const Json& hop : hops) {
      if (item["hops"].size() == kMostHops) break;
      item["hops"].push_back(hop_item(hop));
      if (const auto negative = values::count(hop, {"negative"}); negative > 0)
        item["notes"].push_back(
            fmt::format("{} -> {}: {} commands are left out because the clocks disagree, by up to {}.",
                        values::word(hop, {"from"}, "?"), values::word(hop, {"to"}, "?"), negative,
                        format_duration(std::abs(values::finite(hop, {"worst_negative_ns"}).value_or(0)))));
    }
    item["missing"] = missing_items(values::at(each, {"missing"}));
    if (const std::string words = dominating_words(each); !words.empty())
      item["notes"].push_back(values::sentence(words));
    const std::string id = page.add("waterfalls", std::move(item));
    if (first.empty()) first = id;
  }
  return first;
}

}  // namespace weir::page
