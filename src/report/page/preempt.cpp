// weir.preempt/2: how long urgent work waits, one curve per mechanism, next to published results.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/page/list.h"
#include "report/page/values.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxGroups = 16, kMaxCurves = 64, kMaxCurvePoints = 512, kMaxWords = 50;

// Victims that differ only in the duration of their blocks share a picture; a line between others would be meaningless.
struct VictimGroup {
  std::string kind;
  double waves = 0;  // 0: not known
  auto operator<=>(const VictimGroup&) const = default;
};

VictimGroup group_of(const Json& victim) {
  return {values::word(victim, {"kind"}, "victim"), values::amount(victim, {"waves"}).value_or(0)};
}

std::string words_of(const VictimGroup& group) {
  if (group.waves <= 0) return group.kind == "persistent" ? "one persistent kernel" : group.kind + " kernels";
  return fmt::format("{}kernels of {:.0f} wave{}", group.kind == "waves" ? "" : group.kind + "-bound ", group.waves,
                     group.waves == 1 ? "" : "s");
}

bool is_known(const Json& latency) { return values::amount(latency, {"p50"}).value_or(0) > 0; }

// To the start of the first block if every point has that latency, else to the end, as in the SVG picture.
const char* latency_of(const Json& document) {
  for (const Json& mechanism : values::list(document, {"mechanisms"}))
    for (const Json& point : values::list(mechanism, {"points"}))
      if (values::at(point, {"failure"}).is_null() && !is_known(values::at(point, {"to_start_ns"}))) return "to_end_ns";
  return is_known(values::at(document, {"alone", "to_start_ns"})) ? "to_start_ns" : "to_end_ns";
}

// The lowest tail of the group's points, so that all of them can have it: p99, p90 or p50.
std::string tail_of(const Json& document, const VictimGroup& group) {
  double lowest = 0.99;
  for (const Json& mechanism : values::list(document, {"mechanisms"}))
    for (const Json& point : values::list(mechanism, {"points"}))
      if (group_of(values::at(point, {"victim"})) == group && values::at(point, {"failure"}).is_null() &&
          is_known(values::at(point, {"to_end_ns"})))
        lowest = std::min(lowest, values::amount(point, {"tail_quantile"}).value_or(0.99));
  return lowest < 0.9 ? "p50" : lowest < 0.99 ? "p90" : "p99";
}

Json point_item(const Json& point, const char* latency, const std::string& tail) {
  const Json& victim = values::at(point, {"victim"});
  const auto block = values::amount(victim, {"block_ns"}), waves = values::amount(victim, {"waves"});
  // A persistent kernel has no waves: the document does not contain how long it runs.
  const auto kernel =
      block && waves && *block * *waves <= values::kLongest ? std::optional(*block * *waves) : std::nullopt;
  return {{"victim", fmt::format("{}, blocks of {}", words_of(group_of(victim)),
                                 block ? format_duration(*block) : std::string("?"))},
          {"kernel_ns", number_or_null(kernel)},
          {"block_ns", number_or_null(block)},
          {"latency_ns",
           {{"p50", values::duration(point, {latency, "p50"})},
            {"tail", values::duration(point, {latency, tail.c_str()})},
            {"tail_interval", values::interval(point, {latency, (tail + "_interval").c_str()})}}},
          {"victim_loss", values::number(point, {"victim_loss"})},
          {"is_overloaded", values::is_true(point, {"is_overloaded"})},
          {"failure", values::word_or_null(point, {"failure"})}};
}

Json curve_item(const Json& mechanism, const VictimGroup& group, const char* latency, const std::string& tail) {
  std::vector<Json> points;
  for (const Json& point : values::list(mechanism, {"points"}))
    if (group_of(values::at(point, {"victim"})) == group && points.size() < kMaxCurvePoints)
      points.push_back(point_item(point, latency, tail));
  std::stable_sort(points.begin(), points.end(), [](const Json& a, const Json& b) {
    return values::amount(a, {"block_ns"}).value_or(0) < values::amount(b, {"block_ns"}).value_or(0);
  });
  return {{"name", values::word(mechanism, {"name"}, "?")},
          {"level", values::word_or_null(mechanism, {"level"})},
          {"verdict", values::word_or_null(mechanism, {"verdict"})},
          {"reason",
           values::is_true(mechanism, {"is_offered"}) ? Json(nullptr) : values::word_or_null(mechanism, {"reason"})},
          {"points", std::move(points)}};
}

Json published_items(const Json& published, const std::string& tail) {
  Json items = Json::array();
  const std::string source = values::word(published, {"source"}, "published");
  for (const Json& level : values::list(published, {"levels"})) {
    if (items.size() == kMaxCurves) break;
    Json points = Json::array();
    for (const Json& point : values::list(level, {"points"})) {
      const auto kernel = values::amount(point, {"kernel_ns"});
      if (!kernel || points.size() == kMaxCurvePoints) continue;
      points.push_back({{"kernel_ns", *kernel},
                        {"latency_ns",
                         {{"p50", values::duration(point, {"latency_ns", "p50"})},
                          {"tail", values::duration(point, {"latency_ns", tail.c_str()})}}}});
    }
    // "XSched (OSDI 2025), evaluation data" -> "XSched Lv1, NVIDIA GV100"
    items.push_back(
        {{"name", fmt::format("{} {}, {}", source.substr(0, source.find(' ')), values::word(level, {"level"}, "?"),
                              values::word(published, {"device"}, "?"))},
         {"url", values::word(published, {"url"})},
         {"points", std::move(points)}});
  }
  return items;
}

// The group with the most block times first; then in document order.
std::vector<VictimGroup> groups_of(const Json& document) {
  std::vector<std::pair<VictimGroup, std::size_t>> found;
  const auto add = [&](const Json& victim) {
    const VictimGroup group = group_of(victim);
    const auto at = std::find_if(found.begin(), found.end(), [&](const auto& one) { return one.first == group; });
    if (at != found.end())
      ++at->second;
    else if (found.size() < kMaxGroups)
      found.emplace_back(group, 1);
  };
  for (const Json& victim : values::list(document, {"plan", "victims"})) add(victim);
  for (const Json& mechanism : values::list(document, {"mechanisms"}))
    for (const Json& point : values::list(mechanism, {"points"})) add(values::at(point, {"victim"}));
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<VictimGroup> groups;
  for (const auto& [group, count] : found) groups.push_back(group);
  if (groups.empty()) groups.emplace_back();
  return groups;
}

void find_verdicts(Page& page, const std::string& title, const Json& document, const std::string& anchor) {
  std::size_t listed = 0;
  for (const Json& failure : values::list(document, {"failures"}))
    if (failure.is_string() && ++listed <= kMaxWords)
      page.find({Tone::bad, 1, fmt::format("{}: {}", title, failure.get<std::string>()), "", anchor});
  for (const Json& warning : values::list(document, {"warnings"})) {
    const std::string words = warning.is_string() ? warning.get<std::string>() : values::word(warning, {"text"});
    if (!words.empty() && ++listed <= kMaxWords)
      page.find({Tone::warning, 0, fmt::format("{}: {}.", title, words), values::word(warning, {"advice"}), anchor});
  }
  if (const std::string verdict = values::word(document, {"verdict"}); !verdict.empty())
    page.find({Tone::neutral, 1, fmt::format("{}: {}", title, values::sentence(verdict)), "", anchor});
}

}  // namespace

void section_list::preempt(Page& page, std::size_t source, const Json& document) {
  const std::string title = "preempt on " + fields::text(document, {"device", "name"});
  const char* const latency = latency_of(document);
  const bool is_early = values::word(document, {"status"}) == "ended_early";
  std::string first;
  for (const VictimGroup& group : groups_of(document)) {
    const bool is_first = first.empty();
    Json item = page.item("preemptions", fmt::format("{}: behind {}", title, words_of(group)), source,
                          page.environment_of(source));
    item["verdict"] = values::word(document, {"verdict"});
    item["is_to_start"] = std::string(latency) == "to_start_ns";
    const std::string tail = tail_of(document, group);
    item["tail"] = tail;
    item["alone_tail_ns"] = values::duration(document, {"alone", latency, tail.c_str()});
    item["curves"] = Json::array();
    for (const Json& mechanism : values::list(document, {"mechanisms"})) {
      if (item["curves"].size() == kMaxCurves) break;
      Json curve = curve_item(mechanism, group, latency, tail);
      // Mechanisms without points appear only in the first picture.
      if (is_first || !curve["points"].empty()) item["curves"].push_back(std::move(curve));
    }
    item["published"] = is_first ? published_items(values::at(document, {"published"}), tail) : Json::array();
    item["notes"].push_back(fmt::format("Latency counts from when a request was due {}.",
                                        std::string(latency) == "to_start_ns" ? "to its first block" : "to its end"));
    if (is_early) item["notes"].push_back("Ended early: some points are missing.");
    const std::string id = page.add("preemptions", std::move(item));
    if (is_first) first = id;
  }
  find_verdicts(page, title, document, first);
}

}  // namespace weir::page
