#include "lab/kernels/regression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/named_values.h"
#include "lab/kernels/latency_change.h"
#include "lab/kernels/regression_entries.h"
#include "measure/result.h"
#include "measure/statistics.h"

namespace weir::bench {
namespace {

constexpr std::size_t kLongestValue = 60;  // length of a fact in a sentence

// In the order in which people should read them.
constexpr const char* kVerdicts[] = {"failed", "less_accurate", "slower", "ambiguous", "not_comparable",
                                     "gone",   "new",           "faster", "same"};

struct Pair {
  const ComparedEntry* before = nullptr;
  const ComparedEntry* after = nullptr;
  std::string verdict;
  bool is_regression = false;
  std::string reason;
  std::optional<LatencyChange> change;
  double p = 1, adjusted_p = 1;

  const std::string& key() const { return after != nullptr ? after->key : before->key; }
};

std::string brief(const std::string& text) {
  return text.size() > kLongestValue ? fmt::format("{:.{}}...", text, kLongestValue) : text;
}

// "seed (1337 then, 7 now)"; empty if all agree. A fact that one side lacks does not differ.
std::string differences(const std::map<std::string, std::string>& before,
                        const std::map<std::string, std::string>& after) {
  std::string text;
  for (const auto& [name, then] : before) {
    const auto found = after.find(name);
    if (found == after.end() || then.empty() || found->second.empty() || then == found->second) continue;
    text += fmt::format("{}{} ({} then, {} now)", text.empty() ? "" : ", ", name, brief(then), brief(found->second));
  }
  return text;
}

// The divisor for absolute errors: the size of the data, if both kinds of error reveal it, and 1 for smaller data. The
// sum of 2^25 numbers is off by 0.3 in fp32 when it is right to eight digits, and by as much again if its order
// changes.
double scale_of(const ComparedEntry& entry) {
  const auto most = entry.errors.find("max_error"), relative = entry.errors.find("relative_error");
  if (most == entry.errors.end() || relative == entry.errors.end() || !(relative->second > 0)) return 1;
  return std::max(1.0, most->second / relative->second);
}

// Describes errors that grew: "rmse grew from 1e-05 to 0.02". max_error is judged only if nothing better is known: it
// belongs to one element and depends on the scale of the data.
std::string drift_of(const ComparedEntry& before, const ComparedEntry& after, double limit) {
  std::string text;
  const bool has_better = before.errors.contains("rmse") || before.errors.contains("relative_error");
  for (const auto& [name, then] : before.errors) {
    if (name == "max_error" && has_better) continue;
    const auto now = after.errors.find(name);
    const double scale = name == "relative_error" ? 1 : scale_of(after);
    if (now == after.errors.end() || !((now->second - then) / scale > limit)) continue;
    text += fmt::format("{}{} grew from {:.3g} to {:.3g}", text.empty() ? "" : ", ", name, then, now->second);
  }
  return text;
}

// Decides everything except latency; returns true if latency remains to be judged.
bool judge_state(Pair& pair, const std::string& machine) {
  const auto settle = [&](const char* verdict, std::string reason, bool is_regression = false) {
    pair.verdict = verdict;
    pair.reason = std::move(reason);
    pair.is_regression = is_regression;
    return false;
  };
  const ComparedEntry *before = pair.before, *after = pair.after;
  if (before == nullptr || (before->status == "skipped" && after != nullptr && after->status != "skipped")) {
    const std::string was = before == nullptr ? "the baseline does not have it" : "it was skipped in the baseline";
    if (after->has_failed()) return settle("failed", fmt::format("{}; now: {}", was, after->failure));
    return settle("new", was);
  }
  if (after == nullptr) return settle("gone", "this run does not have it");
  if (after->status == "skipped")
    return settle("gone", fmt::format("skipped: {}", after->failure.empty() ? "no reason given" : after->failure));
  if (after->has_failed() && before->has_failed())
    return settle("failed", fmt::format("failed before and now: {}", after->failure));
  if (after->has_failed())
    return settle("failed", fmt::format("worked before, now {}: {}", after->status, after->failure), true);
  if (before->has_failed()) return settle("failed", fmt::format("works now; the baseline: {}", before->failure));
  if (after->status == "inaccurate" && before->is_ok())
    return settle("less_accurate", fmt::format("was right, now beyond its tolerance: {}", after->failure), true);
  const std::string conditions = differences(before->conditions, after->conditions);
  if (!conditions.empty()) return settle("not_comparable", fmt::format("differ: {}", conditions));
  if (!machine.empty()) return settle("not_comparable", fmt::format("another machine: {}", machine));
  for (const ComparedEntry* side : {before, after})
    if (!side->trouble.empty())
      return settle("not_comparable",
                    fmt::format("{}: {}", side == before ? "the baseline" : "this run", side->trouble));
  return true;
}

// Holm's correction as a factor per test: adjusted p / p.
void judge_latencies(const std::vector<Pair*>& pairs, const RegressionOptions& options) {
  std::vector<double> p;
  for (Pair* pair : pairs) {
    pair->p = std::min(pair->change->p_slower(), pair->change->p_faster());
    p.push_back(pair->p);
  }
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Pair& pair = *pairs[i];
    pair.adjusted_p = adjusted[i];
    const double share = p[i] > 0 ? adjusted[i] / p[i] : 1;
    const LatencyJudgement judgement = judge_latency(*pair.change, options.latency, options.certainty, share);
    pair.verdict = name_of(judgement.verdict);
    pair.is_regression = judgement.verdict == Verdict::slower;
    pair.reason = judgement.reason;
  }
}

void judge_accuracy(Pair& pair, const RegressionOptions& options) {
  if (pair.before == nullptr || pair.after == nullptr) return;
  if (pair.verdict == "failed" || pair.verdict == "gone" || pair.verdict == "new") return;
  // With another seed or size, the errors belong to other data.
  for (const char* condition : {"seed", "problem size", "precision"})
    if (pair.before->conditions.at(condition) != pair.after->conditions.at(condition)) return;
  const std::string drift = drift_of(*pair.before, *pair.after, options.accuracy);
  if (!drift.empty()) {
    pair.reason = pair.verdict == "less_accurate" ? fmt::format("{}; {}", pair.reason, drift)
                                                  : fmt::format("{}; time: {}", drift, pair.reason);
    pair.verdict = "less_accurate";
    pair.is_regression = true;
  } else if (!pair.before->errors.empty() && pair.after->errors.empty() && pair.verdict != "less_accurate") {
    pair.reason += "; its accuracy was checked before, and is not now";
  }
}

Json errors_document(const ComparedEntry* entry) {
  if (entry == nullptr || entry->errors.empty()) return nullptr;
  Json json = Json::object();
  for (const auto& [name, value] : entry->errors) json[name] = value;
  return json;
}

Json case_document(const Pair& pair, double certainty) {
  Json json = WEIR_NAMED(pair.key(), pair.verdict, pair.is_regression);
  const auto& change = pair.change;
  json["ratio"] = number_or_null(change ? std::optional(std::exp(change->log_ratio)) : std::nullopt);
  json["interval"] = interval_or_null(change ? std::optional(change->ratio_interval(certainty)) : std::nullopt);
  json["p"] = number_or_null(change ? std::optional(pair.p) : std::nullopt);
  json["adjusted_p"] = number_or_null(change ? std::optional(pair.adjusted_p) : std::nullopt);
  json["machine_ratio"] =
      number_or_null(change && change->log_machine ? std::optional(std::exp(*change->log_machine)) : std::nullopt);
  json["before_ns"] = {{"p50", number_or_null(pair.before != nullptr ? pair.before->p50_ns : std::nullopt)}};
  json["after_ns"] = {{"p50", number_or_null(pair.after != nullptr ? pair.after->p50_ns : std::nullopt)}};
  json["rounds_before"] = change ? Json(pair.before->times.rounds.size()) : Json();
  json["rounds_after"] = change ? Json(pair.after->times.rounds.size()) : Json();
  json["accuracy_before"] = errors_document(pair.before);
  json["accuracy_after"] = errors_document(pair.after);
  json["reason"] = pair.reason;
  return json;
}

void add_notes(const ComparedSummary& before, const ComparedSummary& after, const std::vector<Pair>& pairs,
               const std::string& machine, Json& notes) {
  if (!machine.empty())
    notes.push_back(fmt::format("The machine is another one: {}. Times are not compared.", machine));
  const std::string software = differences(before.software, after.software);
  if (!software.empty())
    notes.push_back(fmt::format("The environment differs: {}. That may be why times do.", software));
  const auto count = [&](auto holds) { return std::count_if(pairs.begin(), pairs.end(), holds); };
  const auto lone = count([](const Pair& pair) {
    return pair.change && (pair.before->times.rounds.size() < 2 || pair.after->times.rounds.size() < 2);
  });
  if (lone > 0)
    notes.push_back(
        fmt::format("{} of {} cases have one process on a side, so little is seen of how processes differ. "
                    "Measure three rounds or more on both sides.",
                    lone, pairs.size()));
  const auto without =
      count([](const Pair& pair) { return pair.change && !(pair.before->has_rounds && pair.after->has_rounds); });
  if (without > 0)
    notes.push_back(
        fmt::format("{} cases do not say which samples are of which process; each counts as one process.", without));
  if (count([](const Pair& pair) { return pair.change.has_value(); }) == 0)
    notes.push_back("No time of this run could be compared with the baseline.");
}

std::size_t rank_of(const std::string& verdict) {
  return static_cast<std::size_t>(std::find(std::begin(kVerdicts), std::end(kVerdicts), verdict) -
                                  std::begin(kVerdicts));
}

void check(const RegressionOptions& options) {
  if (!(options.latency > 0 && options.latency <= 100))
    reject(fmt::format("a threshold of {} for latency: it must be above 0", options.latency));
  if (!(options.accuracy >= 0)) reject(fmt::format("a threshold of {} for accuracy", options.accuracy));
  if (!(options.certainty >= 0.5 && options.certainty < 1))
    reject(fmt::format("a certainty of {}: it must be at least 0.5 and below 1", options.certainty));
}

}  // namespace

Json compare_summaries(const Json& baseline, const Json& current, const std::string& baseline_name,
                       const RegressionOptions& options) {
  check(options);
  const ComparedSummary before = compared_summary(baseline, baseline_name);
  const ComparedSummary after = compared_summary(current, "this run");
  const std::string machine = differences(before.machine, after.machine);
  std::vector<Pair> pairs;
  for (const ComparedEntry& entry : after.entries) pairs.push_back({before.find(entry.key), &entry});
  for (const ComparedEntry& entry : before.entries)
    if (after.find(entry.key) == nullptr) pairs.push_back({&entry, nullptr});
  // A case that was not measured on either side is not listed.
  std::erase_if(pairs, [](const Pair& pair) {
    return (pair.before == nullptr || pair.before->status == "skipped") &&
           (pair.after == nullptr || pair.after->status == "skipped");
  });
  std::vector<Pair*> tested;
  for (Pair& pair : pairs) {
    if (!judge_state(pair, machine)) continue;
    pair.change = latency_change(pair.before->times, pair.after->times);
    tested.push_back(&pair);
  }
  judge_latencies(tested, options);
  for (Pair& pair : pairs) judge_accuracy(pair, options);
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& left, const Pair& right) {
    if (left.is_regression != right.is_regression) return left.is_regression;
    const std::size_t a = rank_of(left.verdict), b = rank_of(right.verdict);
    if (a != b) return a < b;
    return (left.change ? left.change->log_ratio : 0) > (right.change ? right.change->log_ratio : 0);
  });

  Json counts = Json::object(), cases = Json::array(), notes = Json::array();
  bool has_regressed = false, is_unclear = tested.empty();
  for (const Pair& pair : pairs) {
    counts[pair.verdict] = counts.value(pair.verdict, 0) + 1;
    has_regressed = has_regressed || pair.is_regression;
    is_unclear = is_unclear || pair.verdict == "ambiguous" || pair.verdict == "not_comparable";
    cases.push_back(case_document(pair, options.certainty));
  }
  add_notes(before, after, pairs, machine, notes);
  return WEIR_NAMED(named("baseline", baseline_name),
                    named("options", WEIR_NAMED(options.latency, options.accuracy, options.certainty)),
                    named("verdict", has_regressed ? "regressed" : (is_unclear ? "ambiguous" : "same")), counts, cases,
                    notes);
}

int exit_code(const Json& regressions) {
  return regressions.is_object() && regressions.value("verdict", "") == "regressed" ? 3 : 0;
}

}  // namespace weir::bench
