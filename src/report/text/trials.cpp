// weir.trials/2: which setting makes a program fail, which is fastest, and which variable matters.
#include <fmt/format.h>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

std::string whole(const Json& json, JsonPath keys) { return fmt::format("{:.0f}", number(json, keys).value_or(0)); }

// The time or the metric of a setting.
std::string measured(const Json& document, const Json& value) {
  if (!value.is_number()) return "-";
  return at(document, {"plan", "metric"}).is_string() ? fmt::format("{:.4g}", value.get<double>()) : duration(value);
}

std::string change_words(const Json& entry) {
  const auto ratio = number(entry, {"ratio"});
  if (!ratio) return "-";
  const auto range = interval(entry, {"interval"});
  return range ? fmt::format("{} ({:.3f} .. {:.3f})", format_ratio(*ratio), range->first, range->second)
               : format_ratio(*ratio);
}

// "same", "slower"; a verdict that is none comes with the reason below the table.
std::string verdict_cell(const Json& entry) {
  const Json& verdict = at(entry, {"verdict"});
  return verdict.is_string() ? fields::text(verdict, {}) : "-";
}

void open_with_failures(const Json& document, TextReport& report) {
  const Json& failures = at(document, {"failures"});
  const double failed = number(failures, {"failures"}).value_or(0), trials = number(failures, {"trials"}).value_or(0);
  for (const Json& culprit : list(failures, {"culprits"}))
    report.open("{} makes it fail: {} of {} trials with it, {} of {} without.", text(culprit, {"name"}),
                whole(culprit, {"with", "failures"}), whole(culprit, {"with", "trials"}),
                whole(culprit, {"without", "failures"}), whole(culprit, {"without", "trials"}));
  if (!list(failures, {"culprits"}).empty()) return;
  if (failed == 0) {
    const auto rate = number(failures, {"excluded_rate"});
    report.open("No trial failed.{}", rate
                                          ? fmt::format(" A setting that fails in {:.0f} % of its trials or more would "
                                                        "have shown that with 95 % probability.",
                                                        100 * *rate)
                                          : "");
  } else if (failed == trials) {
    report.open("Every trial failed: the program fails whatever the setting. The outputs say why.");
  } else {
    report.open(
        "{:.0f} of {:.0f} trials failed, and no setting could be blamed: the failures are as likely to be the "
        "program's own. More --trials may tell.",
        failed, trials);
  }
}

void open_with_results(const Json& document, TextReport& report) {
  std::string varying;
  for (const Json& setting : list(document, {"settings"}))
    if (is_true(setting, {"is_nondeterministic"}))
      varying += fmt::format("{}{}", varying.empty() ? "" : "; ", text(setting, {"name"}));
  if (!varying.empty())
    report.open("Nondeterministic: trials of the same setting gave different results: {}.", varying);
  if (is_true(document, {"results_differ"})) report.open("Settings gave different results.");
}

void open_with_speed(const Json& document, TextReport& report) {
  const bool is_less_better = is_true(document, {"plan", "is_less_better"});
  const Json* best = nullptr;
  for (const Json& setting : list(document, {"settings"})) {
    const auto value = number(setting, {"p50"});
    if (!value) continue;
    const double most = best == nullptr ? 0 : *number(*best, {"p50"});
    if (best == nullptr || (is_less_better ? *value < most : *value > most)) best = &setting;
  }
  if (best == nullptr || list(document, {"settings"}).size() < 2) return;
  const std::string verdict = verdict_cell(*best);
  report.open("Best median: {} ({}); {}.", text(*best, {"name"}), measured(document, at(*best, {"p50"})),
              verdict == "-"        ? "that is the baseline"
              : verdict == "faster" ? "clearly faster than the baseline"
              : verdict == "same"   ? "no different from the baseline"
                                    : "not clearly different from the baseline");
}

ReportTable settings_table(const Json& document, std::vector<std::string>& reasons) {
  const bool is_timed = !is_true(document, {"plan", "is_failures_only"});
  ReportTable table{{{"setting", true}, {"trials"}, {"failed"}}};
  if (is_timed)
    for (const char* heading : {"median", "to the baseline", "verdict"}) table.columns.push_back({heading});
  for (const Json& setting : list(document, {"settings"})) {
    std::vector<std::string> row = {text(setting, {"name"}), whole(setting, {"trials"}), whole(setting, {"failures"})};
    if (is_timed) {
      row.push_back(measured(document, at(setting, {"p50"})));
      row.push_back(change_words(setting));
      row.push_back(verdict_cell(setting));
      if (const Json& reason = at(setting, {"reason"}); reason.is_string())
        reasons.push_back(fmt::format("{}: {}.", text(setting, {"name"}), fields::text(reason, {})));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable effects_table(const Json& document) {
  ReportTable table{{{"variable", true}, {"instead of", true}, {"pairs"}, {"ratio"}, {"verdict"}}};
  for (const Json& effect : list(document, {"effects"})) {
    const Json& value = at(effect, {"value"});
    table.rows.push_back({value.is_string() ? fmt::format("{}={}", text(effect, {"name"}), fields::text(value, {}))
                                            : fmt::format("{} unset", text(effect, {"name"})),
                          string(effect, {"first_value"}, "unset"), whole(effect, {"pairs"}), change_words(effect),
                          verdict_cell(effect)});
  }
  return table;
}

ReportTable failures_table(const Json& document) {
  constexpr std::size_t kMost = 10;
  ReportTable table{{{"trial"}, {"setting", true}, {"why", true}, {"output", true}}};
  std::size_t number_of = 0, failed = 0;
  for (const Json& trial : list(document, {"trials"})) {
    ++number_of;
    if (!at(trial, {"failure"}).is_string() || ++failed > kMost) continue;
    const auto setting = static_cast<std::size_t>(number(trial, {"setting"}).value_or(0));
    const Json& settings = list(document, {"settings"});
    table.rows.push_back({fmt::format("{}", number_of),
                          setting < settings.size() ? text(settings[setting], {"name"}) : "-", text(trial, {"failure"}),
                          text(trial, {"stdout"})});
  }
  if (failed > kMost) table.after = fmt::format("and {} more", failed - kMost);
  return table;
}

}  // namespace

TextReport trials_report(const Json& document) {
  TextReport report;
  const Json& plan = at(document, {"plan"});
  const double trials = number(document, {"failures", "trials"}).value_or(0);
  const double matrix = number(plan, {"trials"}).value_or(0) * number(plan, {"settings"}).value_or(0);
  report.title = "weir try";
  report.open("{} in {}; the full matrix has {:.0f}.", counted(trials, "trial"),
              counted(number(plan, {"settings"}).value_or(0), "setting"), matrix);
  if (number(plan, {"combinations"}).value_or(0) > number(plan, {"settings"}).value_or(0))
    report.open("The settings are a balanced random sample of {:.4g} combinations.", *number(plan, {"combinations"}));
  open_with_failures(document, report);
  open_with_results(document, report);
  if (!is_true(plan, {"is_failures_only"})) open_with_speed(document, report);
  std::vector<std::string> reasons;
  ReportTable table = settings_table(document, reasons);
  constexpr std::size_t kMaxReasons = 6;
  if (reasons.size() > kMaxReasons) reasons.resize(kMaxReasons);
  report.add_unless_empty("Settings", std::move(table), std::move(reasons));
  report.add_unless_empty("Which variable matters, all others being equal", effects_table(document));
  report.add_unless_empty("Failures", failures_table(document));
  return report;
}

DocumentText text_list::trials(const Json& document) { return trials_report(document); }

}  // namespace weir
