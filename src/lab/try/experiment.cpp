#include "lab/try/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/redact.h"
#include "run/rounds.h"

namespace weir::trials {
namespace {

namespace fs = std::filesystem;

RaceOptions race_options(const Plan& plan) {
  RaceOptions options;
  options.compare.threshold = plan.threshold;
  options.compare.bootstrap.seed = plan.seed;
  options.is_less_better = plan.is_less_better;
  options.trials = plan.trials;
  return options;
}

std::string own_failure(const TrialRecord& record, const Plan& plan) {
  if (record.how == "timed_out") return fmt::format("took longer than {:g} s", plan.timeout_s);
  if (record.how == "signalled") return ProcessEnd{ProcessEnd::How::signalled, record.code}.words();
  if (record.code != 0) return fmt::format("ended with status {}", record.code);
  if (!plan.metric.empty() && !record.metric) return "its output has no number that --metric finds";
  if (record.metric && *record.metric <= 0)
    return fmt::format("--metric found {:g}, which has no ratio", *record.metric);
  for (const auto& [file, hash] : record.hashes)
    if (!hash) return fmt::format("did not write {}", file);
  return {};
}

// The text that more than half of them are; nothing where there is none.
std::optional<std::string> majority(const std::vector<std::string>& texts) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& text : texts)
    if (2 * ++counts[text] > texts.size()) return text;
  return std::nullopt;
}

// The hashes of a trial as one text.
std::string result_of(const TrialRecord& record) {
  std::string text;
  for (const auto& [file, hash] : record.hashes) text += fmt::format("{} ", hash.value_or("-"));
  return text;
}

}  // namespace

std::size_t Findings::trial_count() const {
  std::size_t count = 0;
  for (const Tally& tally : tallies) count += tally.trials;
  return count;
}

std::size_t Findings::failure_count() const {
  std::size_t count = 0;
  for (const Tally& tally : tallies) count += tally.failures;
  return count;
}

void name_failures(std::vector<TrialRecord>& records, const Plan& plan) {
  std::vector<std::string> results, baseline;
  for (TrialRecord& record : records) {
    record.failure = own_failure(record, plan);
    if (!record.failure.empty()) continue;
    results.push_back(result_of(record));
    if (record.setting == 0) baseline.push_back(results.back());
  }
  if (plan.hashed.empty()) return;
  // With two settings that differ there is no majority; then the baseline is right. A program that never gives the same
  // result twice is reported, but not called failing.
  std::optional<std::string> right = majority(results);
  if (!right) right = majority(baseline);
  if (!right) return;
  for (TrialRecord& record : records)
    if (record.failure.empty() && result_of(record) != *right)
      record.failure = "its result is unlike that of most trials";
}

int exit_code_of(const Findings& findings, bool is_strict) {
  VerdictCounts counts;
  for (std::size_t i = 1; i < findings.changes.size(); ++i) ++counts[findings.changes[i].verdict];
  const std::size_t failures = findings.failure_count();
  if (failures > 0 && failures == findings.trial_count()) return 1;
  if (!findings.judgement.culprits.empty()) return 3;
  if (failures > 0) ++counts[Verdict::ambiguous];
  return exit_code(counts, is_strict);
}

Experiment::Experiment(Plan plan, fs::path folder, RunContext context)
    : plan_(std::move(plan)),
      folder_(std::move(folder)),
      context_(std::move(context)),
      search_(plan_.design, {.rate = plan_.rate}) {
  if (!plan_.metric.empty()) pattern_ = metric_pattern(plan_.metric);
  make_folders(folder_ / "output");
  saved_ = std::make_unique<SavedFile>(file(), true);
}

void Experiment::resume() {
  std::error_code ignored;
  if (!fs::exists(file(), ignored)) return;
  const Json document = read_json(file());
  Json before = member(document, "plan"), now = plan_json(plan_);
  redact(now);  // as the file was
  // These change what is concluded and how long it goes on, but not what a trial is.
  for (const char* key : {"trials", "rate", "threshold"}) before[key] = now[key] = nullptr;
  if (before != now)
    reject(fmt::format("--resume: {} has trials of something else", file().string()),
           "Use the flags and the program of the first run, or another folder with -o.");
  records_ = records_in(document, file().string());
  for (const TrialRecord& record : records_)
    if (record.setting >= plan_.design.settings.size())
      reject(fmt::format("{}: a trial of setting {}, which does not exist", file().string(), record.setting));
  name_failures(records_, plan_);
}

Findings Experiment::findings() const {
  Findings findings;
  const std::size_t settings = plan_.design.settings.size();
  findings.tallies.resize(settings);
  findings.values.resize(settings);
  std::vector<std::set<std::string>> results(settings);
  for (const TrialRecord& record : records_) {
    Tally& tally = findings.tallies[record.setting];
    ++tally.trials;
    if (!record.failure.empty()) ++tally.failures;
    if (own_failure(record, plan_).empty() && !record.hashes.empty()) results[record.setting].insert(result_of(record));
    if (record.failure.empty())
      findings.values[record.setting].push_back(record.metric.value_or(static_cast<double>(record.duration_ns)));
  }
  std::set<std::string> steady;
  for (const auto& of_setting : results) {
    findings.is_varying.push_back(of_setting.size() > 1);
    if (of_setting.size() == 1) steady.insert(*of_setting.begin());
  }
  findings.differs = steady.size() > 1;
  findings.judgement = search_.judge(findings.tallies);
  if (!plan_.is_failures_only) {
    findings.changes = compare_to_baseline(findings.values, race_options(plan_));
    findings.effects = effects_of(plan_.design, findings.values, race_options(plan_));
  }
  return findings;
}

std::vector<bool> Experiment::wanted() const {
  const std::size_t settings = plan_.design.settings.size();
  if (records_.size() >= plan_.matrix()) return std::vector<bool>(settings, false);
  std::vector<Tally> tallies(settings);
  Values values(settings);
  std::size_t failures = 0;
  for (const TrialRecord& record : records_) {
    ++tallies[record.setting].trials;
    if (record.failure.empty()) {
      values[record.setting].push_back(record.metric.value_or(static_cast<double>(record.duration_ns)));
    } else {
      ++tallies[record.setting].failures;
      ++failures;
    }
  }
  std::vector<bool> is_wanted(settings, false);
  if (!plan_.is_failures_only || settings == 1) {
    is_wanted = wanted_by_race(values, race_options(plan_));
    for (std::size_t i = 0; i < settings; ++i)
      if (tallies[i].trials >= plan_.trials) is_wanted[i] = false;
  }
  const Judgement judgement = search_.judge(tallies);
  // There is nothing to learn about the speed of a setting that fails.
  for (const Culprit& culprit : judgement.culprits)
    for (const std::uint32_t setting : search_.suspects()[culprit.suspect].settings) is_wanted[setting] = false;
  if (failures > 0 || plan_.is_failures_only)
    for (std::size_t i = 0; i < settings; ++i)
      if (judgement.is_wanted[i]) is_wanted[i] = true;
  return is_wanted;
}

bool Experiment::run_one(std::size_t setting, std::size_t round, const std::atomic<bool>& stop) {
  const Setting& levels = plan_.design.settings[setting];
  TrialRequest request;
  const bool varies_command = plan_.commands.size() > 1;
  request.command = plan_.commands[varies_command ? levels[0] : 0];
  for (std::size_t factor = varies_command ? 1 : 0; factor < levels.size(); ++factor) {
    const auto& [name, values] = plan_.design.factors[factor];
    if (const auto& value = values[levels[factor]])
      request.variables.emplace_back(name, *value);
    else
      request.absent.push_back(name);
  }
  request.timeout_s = plan_.timeout_s;
  request.metric = pattern_ ? &*pattern_ : nullptr;
  request.hashed = plan_.hashed;
  TrialRecord record;
  record.setting = setting;
  record.round = round;
  record.out_file = fmt::format("output/{:04}.out", records_.size() + 1);
  record.err_file = fmt::format("output/{:04}.err", records_.size() + 1);
  request.out_file = folder_ / record.out_file;
  request.err_file = folder_ / record.err_file;
  TrialOutcome outcome = run_trial(request, stop);
  using How = ProcessEnd::How;
  if (outcome.end.how == How::stopped) return false;
  record.how = outcome.end.how == How::timed_out ? "timed_out"
               : outcome.end.how == How::exited  ? "exited"
                                                 : "signalled";
  record.code = outcome.end.value;
  record.duration_ns = outcome.duration_ns;
  record.metric = outcome.metric;
  record.hashes = std::move(outcome.hashes);
  records_.push_back(std::move(record));
  name_failures(records_, plan_);
  return true;
}

bool Experiment::run(const std::atomic<bool>& stop, const OnTrial& on_trial) {
  std::set<std::pair<std::size_t, std::size_t>> done;  // setting and round
  std::size_t resumed = 0;                             // the round that was interrupted
  for (const TrialRecord& record : records_) {
    done.emplace(record.setting, record.round);
    resumed = std::max(resumed, record.round);
  }
  std::vector<bool> is_wanted = wanted();
  RoundsControl control;
  control.wants = [&](std::size_t setting, std::size_t round) {
    return round >= resumed && is_wanted[setting] && !done.contains({setting, round});
  };
  control.run = [&](std::size_t setting, std::size_t round) {
    if (!run_one(setting, round, stop)) return false;
    save("running");
    if (on_trial) on_trial(records_.back(), records_.size());
    is_wanted = wanted();
    return true;
  };
  control.is_enough = [&](std::size_t) {
    return std::find(is_wanted.begin(), is_wanted.end(), true) == is_wanted.end();
  };
  RoundsPlan rounds;
  rounds.sides = plan_.design.settings.size();
  // One suspect may be alone in a round.
  rounds.max_rounds = resumed + 1 + plan_.matrix();
  rounds.seed = plan_.seed;
  const bool is_complete = run_rounds(rounds, control, stop).end != RoundsEnd::interrupted;
  save(is_complete ? "complete" : "interrupted");
  return is_complete;
}

Json Experiment::document(const char* status) const {
  return trials_document(plan_, records_, findings(), search_.suspects(), context_, status);
}

void Experiment::save(const char* status) { saved_->save(to_text(document(status))); }

}  // namespace weir::trials
