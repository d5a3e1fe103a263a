// weir.trials/2.
#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "lab/try/experiment.h"

namespace weir::trials {
namespace {

Json interval_of(const Change& change) {
  if (!change.interval) return nullptr;
  return Json::array({number_or_null(change.interval->low), number_or_null(change.interval->high)});
}

// What is set for the program; null: the variable is not set.
Json variables_of(const Plan& plan, const Setting& setting) {
  Json variables = Json::object();
  for (std::size_t i = plan.commands.size() > 1 ? 1 : 0; i < setting.size(); ++i)
    variables[plan.design.factors[i].name] = or_null(plan.design.factors[i].values[setting[i]]);
  return variables;
}

Json tally_json(const Tally& tally) { return WEIR_NAMED(tally.trials, tally.failures); }

Json verdict_json(const Change& change, bool is_judged) {
  return WEIR_NAMED(change.ratio, named("interval", interval_of(change)), change.adjusted_p,
                    named("verdict", is_judged ? Json(name_of(change.verdict)) : Json()),
                    named("reason", text_or_null(change.reason)));
}

Json settings_json(const Plan& plan, const Findings& findings) {
  Json all = Json::array();
  for (std::size_t i = 0; i < plan.design.settings.size(); ++i) {
    const Setting& setting = plan.design.settings[i];
    Json one = WEIR_NAMED(named("name", words_for(plan.design, setting)),
                          named("command", plan.commands[plan.commands.size() > 1 ? setting[0] : 0]),
                          named("variables", variables_of(plan, setting)), findings.tallies[i].trials,
                          findings.tallies[i].failures, named("is_nondeterministic", bool(findings.is_varying[i])));
    const Change change = findings.changes.empty() ? Change{} : findings.changes[i];
    one["p50"] = number_or_null(change.test_median);
    one["unit"] = plan.metric.empty() ? Json("ns") : Json();
    one.update(verdict_json(change, i > 0 && !findings.changes.empty()));
    all.push_back(std::move(one));
  }
  return all;
}

Json failures_json(const Plan& plan, const Findings& findings, const std::vector<Suspect>& suspects) {
  std::uint32_t fewest = findings.tallies[0].trials;
  for (const Tally& tally : findings.tallies) fewest = std::min(fewest, tally.trials);
  const Json culprits = json_list(findings.judgement.culprits, [&](const Culprit& culprit) {
    const Suspect& suspect = suspects[culprit.suspect];
    return WEIR_NAMED(named("name", words_for(plan.design, suspect)), suspect.settings,
                      named("with", tally_json(culprit.inside)), named("without", tally_json(culprit.outside)),
                      named("evidence", std::exp(std::min(culprit.evidence, 700.0))));
  });
  // A setting that fails more often would have shown a failure with 95 % probability.
  const std::optional<double> excluded_rate =
      findings.failure_count() == 0 && fewest > 0 ? std::optional(1 - std::pow(0.05, 1.0 / fewest)) : std::nullopt;
  return WEIR_NAMED(named("trials", findings.trial_count()), named("failures", findings.failure_count()), culprits,
                    excluded_rate);
}

Json trial_json(const TrialRecord& record, const Plan& plan) {
  Json hashes = Json::object();
  for (const auto& [file, hash] : record.hashes) hashes[file] = or_null(hash);
  const bool has_code = record.how == "exited", has_signal = record.how == "signalled";
  return WEIR_NAMED(record.setting, record.round,
                    named("variables", variables_of(plan, plan.design.settings[record.setting])),
                    named("ended", record.how), named("exit_code", has_code ? Json(record.code) : Json()),
                    named("signal", has_signal ? Json(record.code) : Json()), record.duration_ns, record.metric, hashes,
                    named("failure", text_or_null(record.failure)), named("stdout", record.out_file),
                    named("stderr", record.err_file));
}

}  // namespace

Json plan_json(const Plan& plan) {
  const Json factors = json_list(plan.design.factors, [](const Factor& factor) {
    return WEIR_NAMED(factor.name,
                      named("values", json_list(factor.values, [](const auto& value) { return or_null(value); })));
  });
  return WEIR_NAMED(plan.commands, factors, named("settings", plan.design.settings.size()), plan.design.combinations,
                    plan.trials, named("timeout_ns", positive_or_null(plan.timeout_s * 1e9)),
                    named("metric", text_or_null(plan.metric)), plan.is_less_better, plan.hashed, plan.is_failures_only,
                    plan.rate, plan.threshold, plan.seed);
}

Json trials_document(const Plan& plan, const std::vector<TrialRecord>& records, const Findings& findings,
                     const std::vector<Suspect>& suspects, const RunContext& context, const char* status) {
  const Json effects = json_list(findings.effects, [&](const Effect& effect) {
    const Factor& factor = plan.design.factors[effect.factor];
    Json one = WEIR_NAMED(factor.name, named("value", or_null(factor.values[effect.value])),
                          named("first_value", or_null(factor.values[0])), effect.pairs);
    one.update(verdict_json(effect.change, true));
    return one;
  });
  return WEIR_NAMED(
      named("schema", schemas::trials), named("created", wall_time()), status, context.command_line,
      context.environment, named("plan", plan_json(plan)), named("settings", settings_json(plan, findings)),
      named("failures", failures_json(plan, findings, suspects)), named("results_differ", findings.differs), effects,
      named("trials", json_list(records, [&](const auto& record) { return trial_json(record, plan); })));
}

std::vector<TrialRecord> records_in(const Json& document, const std::string& name) {
  std::vector<TrialRecord> records;
  try {
    for (const Json& trial : member(document, "trials")) {
      TrialRecord record;
      record.setting = trial["setting"].get<std::size_t>();
      record.round = trial["round"].get<std::size_t>();
      record.how = trial["ended"].get<std::string>();
      if (record.how != "timed_out")
        record.code = member(trial, record.how == "exited" ? "exit_code" : "signal").get<int>();
      record.duration_ns = trial["duration_ns"].get<std::int64_t>();
      if (trial["metric"].is_number()) record.metric = trial["metric"].get<double>();
      for (const auto& [file, hash] : trial["hashes"].items())
        record.hashes.emplace_back(file, hash.is_string() ? std::optional(hash.get<std::string>()) : std::nullopt);
      record.out_file = trial["stdout"].get<std::string>();
      record.err_file = trial["stderr"].get<std::string>();
      records.push_back(std::move(record));
    }
  } catch (const JsonError& error) {
    reject(fmt::format("{}: not a document of trials: {}", name, error.what()), "Use another folder with -o.");
  }
  return records;
}

}  // namespace weir::trials
