#include "report/figures/judgement.h"

#include <fmt/format.h>

#include <array>

#include "report/text/comparison.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

Judgement of_pair(const PairComparison& pair) {
  Judgement judgement;
  judgement.label = pair.label;
  judgement.severity = slowness_of(pair);
  // A failed baseline leaves nothing to judge; a failed test is worse than a slow one.
  judgement.finding = pair.verdict == Verdict::slower   ? pair.failure.empty() ? CaseStatus::slower : CaseStatus::failed
                      : pair.verdict == Verdict::faster ? CaseStatus::faster
                      : pair.verdict == Verdict::same   ? CaseStatus::same
                                                        : CaseStatus::ambiguous;
  const auto say = [&](const std::string& line) { judgement.text += (judgement.text.empty() ? "" : "\n") + line; };
  if (!pair.failure.empty()) say(pair.failure);
  for (const MetricComparison& metric : pair.metrics) say(metric_line(metric));
  for (const std::string& note : pair.notes) say("note: " + note);
  return judgement;
}

Judgement of_lone(const LonePoint& point, const char* side) {
  return {CaseStatus::lone, point.label, fmt::format("only in the {}: {}", side, point.nearest), 0};
}

// "slower", "less_accurate", ... of bench_regressions.md, by what they mean for a gate.
CaseStatus finding_of(const std::string& verdict, bool is_regression) {
  if (verdict == "failed") return CaseStatus::failed;
  if (is_regression) return CaseStatus::slower;
  if (verdict == "faster") return CaseStatus::faster;
  if (verdict == "same") return CaseStatus::same;
  if (verdict == "new" || verdict == "gone") return CaseStatus::lone;
  return CaseStatus::ambiguous;
}

Judgement of_regression(const Json& entry) {
  const std::string verdict = text(entry, {"verdict"});
  Judgement judgement;
  judgement.finding = finding_of(verdict, is_true(entry, {"is_regression"}));
  judgement.label = text(entry, {"key"});
  judgement.severity = number(entry, {"ratio"}).value_or(0);
  judgement.text = regression_line(entry);
  return judgement;
}

void summarise_cases(Judged& judged, bool is_compared) {
  for (const auto& [finding, count] : judged.counts())
    judged.summary += fmt::format("{}{} {}", judged.summary.empty() ? "" : ", ", count,
                                  finding == CaseStatus::same && !is_compared ? "ran" : name_of(finding));
}

}  // namespace

const char* name_of(CaseStatus finding) {
  constexpr std::array kNames{"failed", "slower", "ambiguous", "lone", "faster", "same"};
  return kNames[static_cast<std::size_t>(finding)];
}

std::map<CaseStatus, std::size_t> Judged::counts() const {
  std::map<CaseStatus, std::size_t> counts;
  for (const JudgedSuite& suite : suites)
    for (const Judgement& judgement : suite.cases) ++counts[judgement.finding];
  return counts;
}

CaseStatus Judged::verdict() const {
  const auto found = counts();
  for (const auto& [finding, count] : found)
    if (finding != CaseStatus::lone) return finding;
  return CaseStatus::same;
}

Judged judge(const Comparison& comparison, const std::string& tool, bool is_strict) {
  Judged judged{tool, verdict_line(comparison), is_strict, exit_code(comparison, is_strict), {}};
  for (const TestComparison& test : comparison.tests) {
    JudgedSuite& suite = judged.suites.emplace_back();
    suite.name = fmt::format("{} against {}", test.name, comparison.baseline);
    for (const PairComparison& pair : test.pairs) suite.cases.push_back(of_pair(pair));
    for (const LonePoint& point : test.baseline_only) suite.cases.push_back(of_lone(point, "baseline"));
    for (const LonePoint& point : test.test_only) suite.cases.push_back(of_lone(point, "test"));
  }
  return judged;
}

Judged judge_bench(const Json& summary, bool is_strict, int exit_code) {
  Judged judged{"weir bench", "", is_strict, exit_code, {}};
  JudgedSuite& suite = judged.suites.emplace_back();
  const Json& regressions = at(summary, {"regressions"});
  suite.name = regressions.is_object() ? fmt::format("cases against {}", text(regressions, {"baseline"})) : "cases";
  std::map<std::string, std::size_t> by_key;
  for (const Json& entry : list(regressions, {"cases"})) {
    suite.cases.push_back(of_regression(entry));
    by_key[suite.cases.back().label] = suite.cases.size() - 1;
  }
  for (const Json& entry : list(summary, {"cases"})) {
    const std::string key = text(entry, {"key"}), status = text(entry, {"status"});
    const bool is_failed = status != "ok" && status != "skipped";
    const auto found = by_key.find(key);
    // A failed case has no times to compare; a baseline does not change that.
    if (found != by_key.end() && !is_failed) continue;
    Judgement judgement;
    judgement.label = key;
    judgement.finding = is_failed ? CaseStatus::failed : status == "skipped" ? CaseStatus::lone : CaseStatus::same;
    judgement.text =
        status == "ok" ? "it ran, and was not compared" : fmt::format("{}: {}", status, text(entry, {"error", "what"}));
    if (found != by_key.end()) {
      suite.cases[found->second] = std::move(judgement);
    } else {
      suite.cases.push_back(std::move(judgement));
    }
  }
  summarise_cases(judged, regressions.is_object());
  return judged;
}

Judged judge_channel(const Json& document, const std::string& tool, bool is_strict, int exit_code) {
  Judged judged{tool, "", is_strict, exit_code, {}};
  JudgedSuite& suite = judged.suites.emplace_back();
  const Json& comparison = at(document, {"comparison"});
  suite.name = comparison.is_object() ? fmt::format("channels against {}", text(comparison, {"baseline"})) : "channels";
  std::map<std::string, const Json*> changes;
  bool has_ours = false;
  for (const Json& change : list(comparison, {"changes"})) {
    changes[text(change, {"id"})] = &change;
    has_ours = has_ours || is_true(change, {"is_ours"});
  }
  for (const Json& benchmark : list(document, {"benchmarks"})) {
    Judgement judgement;
    judgement.label = text(benchmark, {"id"});
    const std::string status = text(benchmark, {"status"});
    const auto change = changes.find(judgement.label);
    if (status == "failed") {
      judgement.finding = CaseStatus::failed;
      judgement.text = text(benchmark, {"reason"});
    } else if (status != "measured") {
      judgement.finding = CaseStatus::lone;
      judgement.text = text(benchmark, {"reason"});
    } else if (change == changes.end()) {
      judgement.finding = comparison.is_object() ? CaseStatus::lone : CaseStatus::same;
      judgement.text = comparison.is_object() ? "only in this run" : "it ran, and was not compared";
    } else {
      const Json& how = *change->second;
      const std::string verdict = text(how, {"verdict"});
      // Other people's queues are controls beside ours: what changes in them is the machine, and fails nothing.
      const bool is_judged = is_true(how, {"is_ours"}) || !has_ours || verdict == "same";
      judgement.finding = is_judged ? finding_of(verdict, verdict == "slower") : CaseStatus::lone;
      judgement.severity = number(how, {"slowness"}).value_or(0);
      const auto slowness = number(how, {"slowness"});
      judgement.text = fmt::format("{}: {}{}", verdict,
                                   slowness ? fmt::format("takes {:.2f}x the time of the baseline", *slowness)
                                            : std::string("no time to compare"),
                                   at(how, {"reason"}).is_null() ? "" : "; " + text(how, {"reason"}));
    }
    suite.cases.push_back(std::move(judgement));
  }
  summarise_cases(judged, comparison.is_object());
  return judged;
}

}  // namespace weir
