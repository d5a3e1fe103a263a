// weir.trace_comparison/2: two traces; busy, idle and work done of both, then pace, categories and kernels with
// verdicts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/page/items.h"
#include "report/page/list.h"
#include "report/page/values.h"
#include "report/text/fields.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxChanges = 1000, kMaxTotals = 32, kMaxSentences = 16;
constexpr std::array kJudgements = {"slower", "faster", "same", "ambiguous", "not_comparable"};

bool is_judgement(const std::string& word) {
  return std::find(kJudgements.begin(), kJudgements.end(), word) != kJudgements.end();
}

// `baseline` and `test` are the keys of the medians. Adds nothing where there is no verdict.
void add_change(Json& item, const std::string& label, const Json& change, values::Keys baseline, values::Keys test) {
  const std::string verdict = values::word(change, {"verdict"});
  if (!is_judgement(verdict) || item["pairs"].size() == kMaxChanges) return;
  Json& count = item["verdicts"][verdict];
  count = count.get<int>() + 1;
  Json metric = {{"metric", "time"}, {"unit", "ns"}, {"verdict", verdict}};
  metric["reason"] = values::word_or_null(change, {"reason"});
  metric["baseline"] = {{"p50", values::duration(change, baseline)}};
  metric["test"] = {{"p50", values::duration(change, test)}};
  metric["ratio"] = values::number(change, {"ratio"});
  metric["interval"] = values::interval(change, {"interval"});
  metric["adjusted_p"] = values::number(change, {"adjusted_p"});
  Json pair = {{"label", label}, {"verdict", verdict}, {"failure", nullptr}, {"metrics", Json::array()}};
  pair["metrics"].push_back(std::move(metric));
  item["pairs"].push_back(std::move(pair));
}

}  // namespace

void section_list::trace_comparison(Page& page, std::size_t source, const Json& document) {
  const std::string baseline = values::word(document, {"baseline"}), test = values::word(document, {"test"});
  const std::string name = fmt::format("{} against {}", test, baseline);
  Json item = page.item("comparisons", name, source, std::nullopt);
  item["baseline"] = baseline;
  item["test"] = test;
  item["threshold"] = values::amount(document, {"threshold"}, 100).value_or(0.05);
  item["verdicts"] = Json::object();
  for (const char* verdict : kJudgements) item["verdicts"][verdict] = 0;
  item["totals"] = Json::array();
  for (const Json& total : fields::first(values::list(document, {"totals"}), kMaxTotals))
    item["totals"].push_back({{"quantity", values::word(total, {"quantity"})},
                              {"unit", values::word(total, {"unit"})},
                              {"baseline", values::number(total, {"baseline"})},
                              {"test", values::number(total, {"test"})},
                              {"ratio", values::number(total, {"ratio"})}});
  item["pairs"] = Json::array();
  const Json& pace = values::at(document, {"pace"});
  add_change(item, values::is_true(pace, {"is_marked"}) ? "time per iteration" : "time per repetition", pace,
             {"baseline", "duration_ns", "p50"}, {"test", "duration_ns", "p50"});
  for (const Json& change : values::list(document, {"categories"})) {
    std::string label = values::word(change, {"category"}, "time");
    std::replace(label.begin(), label.end(), '_', ' ');
    add_change(item, label, change, {"baseline_ns"}, {"test_ns"});
  }
  for (const Json& change : values::list(document, {"kernels"}))
    add_change(item, values::word(change, {"name"}, "kernel"), change, {"baseline", "duration_ns", "p50"},
               {"test", "duration_ns", "p50"});
  item["only"] = Json::array();
  for (const auto& [key, side] : {std::pair("baseline_only", "baseline"), std::pair("test_only", "test")})
    for (const Json& kernel : values::list(document, {key}))
      if (item["only"].size() < kMaxChanges)
        item["only"].push_back({{"label", values::word(kernel, {"name"}, "kernel")}, {"side", side}});
  if (const std::string kernel = values::word(pace, {"kernel"}); !kernel.empty())
    item["notes"].push_back(fmt::format("A repetition lasts from one start of {} to the next.", kernel));
  for (const Json& note : fields::first(values::list(document, {"notes"}), kMaxSentences))
    if (note.is_string()) item["notes"].push_back(values::sentence(note.string()));

  const std::string verdict = values::word(pace, {"verdict"});
  const auto slower = item["verdicts"]["slower"].get<int>(), faster = item["verdicts"]["faster"].get<int>();
  const Tone tone = slower > 0                                              ? Tone::bad
                    : verdict == "ambiguous" || verdict == "not_comparable" ? Tone::warning
                    : faster > 0                                            ? Tone::good
                                                                            : Tone::neutral;
  const std::string id = page.add("comparisons", std::move(item));
  std::string text;
  for (const Json& sentence : fields::first(values::list(document, {"summary"}), kMaxSentences))
    if (sentence.is_string()) text += (text.empty() ? "" : " ") + values::sentence(sentence.string());
  if (slower > (verdict == "slower" ? 1 : 0))
    text +=
        fmt::format(" {} of {} times that were compared are slower.", slower, values::count(document, {"hypotheses"}));
  page.find({tone, 2, text.empty() ? name + ": a comparison of an older Weir." : text, "", id, "", true});
  add_text(page, source, document, name);
}

}  // namespace weir::page
