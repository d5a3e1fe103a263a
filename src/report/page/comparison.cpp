// A comparison: each pair with its medians, ratio and interval; slowdowns and speedups become findings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/units.h"
#include "report/page/list.h"
#include "report/page/values.h"
#include "report/text/fields.h"

namespace weir::page {
namespace {

using namespace fields;

constexpr std::size_t kMaxPairs = 10'000;
constexpr std::array kVerdicts = {"slower", "faster", "same", "ambiguous", "not_comparable"};

// Anything else is shown as "ambiguous", which claims nothing.
std::string verdict_at(const Json& json) {
  const std::string verdict = text(json, {"verdict"});
  return std::find(kVerdicts.begin(), kVerdicts.end(), verdict) == kVerdicts.end() ? "ambiguous" : verdict;
}

Json metric_json(const std::string& name, const Json& metric) {
  Json json = Json::object();
  json["metric"] = name;
  json["unit"] = text(metric, {"unit"});
  json["verdict"] = verdict_at(metric);
  json["reason"] = values::word_or_null(metric, {"reason"});
  json["baseline"] = {{"p50", number_or_null(number(metric, {"baseline", "p50"}))}};
  json["test"] = {{"p50", number_or_null(number(metric, {"test", "p50"}))}};
  json["ratio"] = number_or_null(number(metric, {"ratio"}));
  json["interval"] = values::interval(metric, {"interval"});
  json["adjusted_p"] = number_or_null(number(metric, {"adjusted_p"}));
  return json;
}

Json pair_json(const Json& pair) {
  Json json = Json::object();
  json["label"] = text(pair, {"label"});
  json["verdict"] = verdict_at(pair);
  json["failure"] = values::word_or_null(pair, {"failure"});
  json["metrics"] = Json::array();
  for (const auto& [name, metric] : at(pair, {"metrics"}).items())
    if (json["metrics"].size() < 16) json["metrics"].push_back(metric_json(name, metric));
  return json;
}

// The size of a change in either direction: 0.5 is half as fast or twice as fast.
double change_of(const Json& pair) {
  double most = 0;
  for (const Json& metric : pair["metrics"])
    if (metric["ratio"].is_number() && metric["verdict"] == pair["verdict"] && metric["ratio"].get<double>() > 0)
      most = std::max(most, 1 - std::exp(-std::fabs(std::log(metric["ratio"].get<double>()))));
  return most;
}

// "p50 latency 1.21x, 10.1 ms to 12.2 ms"
std::string change_words(const Json& pair) {
  for (const Json& metric : pair["metrics"]) {
    if (metric["verdict"] != pair["verdict"] || !metric["ratio"].is_number()) continue;
    const bool is_time = metric["unit"] == "ns";
    const auto value = [&](const char* side) {
      const Json& p50 = metric[side]["p50"];
      if (!p50.is_number()) return std::string("-");
      const double number = p50.get<double>();
      return is_time ? format_duration(number)
                     : fmt::format("{} {}", format_quantity(number), metric["unit"].get<std::string>());
    };
    return fmt::format("median {} {} of the baseline's, {} to {}", metric["metric"].get<std::string>(),
                       format_ratio(metric["ratio"].get<double>()), value("baseline"), value("test"));
  }
  return "no metric says by how much";
}

// Names the worst pair of one verdict, and counts the others.
void find_changed(Page& page, const Json& item, const char* verdict, Tone tone, const char* advice) {
  const Json* most = nullptr;
  std::size_t count = 0;
  for (const Json& pair : item["pairs"]) {
    if (pair["verdict"] != verdict || pair["failure"].is_string()) continue;
    ++count;
    if (most == nullptr || change_of(pair) > change_of(*most)) most = &pair;
  }
  if (most == nullptr) return;
  const std::string label = (*most)["label"].get<std::string>();
  const std::string text = count == 1
                               ? fmt::format("{} is {} than its baseline: {}.", label, verdict, change_words(*most))
                               : fmt::format("{} of {} pairs are {} than the baseline; most: {}, {}.", count,
                                             item["pairs"].size(), verdict, label, change_words(*most));
  page.find({tone, 1 + change_of(*most), text, advice, item["id"].get<std::string>()});
}

void find_in(Page& page, const Json& item) {
  const std::string id = item["id"].get<std::string>();
  find_changed(page, item, "slower", Tone::bad,
               "Look at what changed between the two (notes of the comparison name settings that differ), and run "
               "both again on a quiet machine before you bisect.");
  find_changed(page, item, "faster", Tone::good, "");
  std::size_t failed = 0, ambiguous = 0, unlike = 0;
  const Json* first = nullptr;
  for (const Json& pair : item["pairs"]) {
    const bool is_failed = pair["failure"].is_string();
    if (is_failed && first == nullptr) first = &pair;
    failed += is_failed ? 1 : 0;
    ambiguous += !is_failed && pair["verdict"] == "ambiguous" ? 1 : 0;
    unlike += !is_failed && pair["verdict"] == "not_comparable" ? 1 : 0;
  }
  if (failed > 0)
    page.find({Tone::bad, 1,
               fmt::format("{} of {} pairs could not be compared; the first: {}: {}.", failed, item["pairs"].size(),
                           (*first)["label"].get<std::string>(), (*first)["failure"].get<std::string>()),
               "", id});
  if (unlike > 0)
    page.find({Tone::warning, 0.2,
               fmt::format("{} of {} pairs have a metric that cannot be compared; its reason is with it.", unlike,
                           item["pairs"].size()),
               "", id});
  if (ambiguous > 0)
    page.find(
        {Tone::warning, 0.2,
         fmt::format("{} of {} pairs are too noisy to say whether they changed.", ambiguous, item["pairs"].size()),
         "Take more iterations, and keep other programs off the machine.", id});
}

void add_test(Page& page, std::size_t source, const Json& document, const Json& test) {
  const std::string baseline = text(document, {"baseline"}), file = text(test, {"file"});
  Json item = page.item("comparisons", fmt::format("{} against {}", file, baseline), source, std::nullopt);
  for (const Json& note : list(test, {"notes"}))
    if (note.is_string() && item["notes"].size() < 50) item["notes"].push_back(note);
  item["baseline"] = baseline;
  item["test"] = file;
  item["threshold"] = number(document, {"threshold"}).value_or(0.05);
  item["verdicts"] = Json::object();
  for (const char* verdict : kVerdicts) item["verdicts"][verdict] = 0;
  item["pairs"] = Json::array();
  const Json& pairs = list(test, {"pairs"});
  for (const Json& pair : first(pairs, kMaxPairs)) {
    Json made = pair_json(pair);
    Json& count = item["verdicts"][made["verdict"].get<std::string>()];
    count = count.get<int>() + 1;
    item["pairs"].push_back(std::move(made));
  }
  if (pairs.size() > kMaxPairs)
    item["notes"].push_back(fmt::format("{} pairs are shown of {}", kMaxPairs, pairs.size()));
  item["only"] = Json::array();
  for (const auto& [name, side] : {std::pair("baseline_only", "baseline"), std::pair("test_only", "test")}) {
    for (const Json& point : list(test, {name}))
      if (item["only"].size() < kMaxPairs)
        item["only"].push_back(
            {{"label", point.is_string() ? point.get<std::string>() : text(point, {"label"})}, {"side", side}});
  }
  const Json copy = item;
  page.add("comparisons", std::move(item));
  find_in(page, copy);
}

}  // namespace

void section_list::comparison(Page& page, std::size_t source, const Json& document) {
  for (const Json& test : first(list(document, {"tests"}), 100)) add_test(page, source, document, test);
}

}  // namespace weir::page
