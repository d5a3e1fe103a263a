// Runs trials of settings in rounds until the questions are answered, and keeps all of them in a folder: trials.json
// after each trial, outputs beside it. A folder of an interrupted experiment is continued without repeating a trial.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/try/culprit.h"
#include "lab/try/design.h"
#include "lab/try/race.h"
#include "lab/try/trial.h"
#include "run/runner.h"

namespace weir::trials {

struct Plan {
  Design design;                                   // its first factor is the command where there are several
  std::vector<std::vector<std::string>> commands;  // one, or one for each value of the first factor
  std::size_t trials = 10;                         // the full matrix has as many of each setting
  double timeout_s = 0;                            // 0: none
  std::string metric;                              // empty: wall time
  bool is_less_better = true;
  std::vector<std::string> hashed;
  bool is_failures_only = false;
  double rate = 0.3, threshold = 0.05;
  std::uint64_t seed = 1;

  std::size_t matrix() const { return trials * design.settings.size(); }
};

struct TrialRecord {
  std::size_t setting = 0, round = 0;
  std::string how;  // "exited", "signalled", "timed_out"
  int code = 0;     // exit status or signal
  std::int64_t duration_ns = 0;
  std::optional<double> metric;
  std::vector<std::pair<std::string, std::optional<std::string>>> hashes;
  std::string out_file, err_file;  // within the folder
  std::string failure;             // why it counts as a failure; empty: it does not
};

// What follows from the trials so far.
struct Findings {
  std::vector<Tally> tallies;    // of each setting
  Values values;                 // of trials that did not fail
  std::vector<Change> changes;   // each setting against the first; empty where only failures are asked for
  std::vector<Effect> effects;   // of each value of each factor
  Judgement judgement;           // who is to blame for failures
  std::vector<bool> is_varying;  // settings whose trials gave different hashes
  bool differs = false;          // whether settings, each with one hash, differ from each other

  std::size_t trial_count() const;
  std::size_t failure_count() const;
};

// Judges hashes over all trials, so it may change what earlier ones are called.
void name_failures(std::vector<TrialRecord>& records, const Plan& plan);

// 0 nothing found, 1 every trial failed, 3 a setting fails or is slower than the first, 4 unclear and `is_strict`.
int exit_code_of(const Findings& findings, bool is_strict);

class Experiment {
 public:
  Experiment(Plan plan, std::filesystem::path folder, RunContext context);

  // Takes the trials that the folder has. Rejects a folder of another experiment.
  void resume();

  // Called after each trial with the number of trials so far.
  using OnTrial = std::function<void(const TrialRecord& record, std::size_t count)>;
  // Returns false where it was interrupted. Throws StartError where the program cannot be executed.
  bool run(const std::atomic<bool>& stop, const OnTrial& on_trial);

  const Plan& plan() const { return plan_; }
  const std::vector<TrialRecord>& records() const { return records_; }
  const FailureSearch& search() const { return search_; }
  Findings findings() const;
  Json document(const char* status) const;
  std::filesystem::path file() const { return folder_ / "trials.json"; }

 private:
  bool run_one(std::size_t setting, std::size_t round, const std::atomic<bool>& stop);
  void save(const char* status);
  std::vector<bool> wanted() const;

  Plan plan_;
  std::filesystem::path folder_;
  RunContext context_;
  FailureSearch search_;
  std::optional<std::regex> pattern_;
  std::vector<TrialRecord> records_;
  std::unique_ptr<SavedFile> saved_;  // the folder is this process's alone
};

// weir.trials/2, and what was planned and tried, read back from it.
Json trials_document(const Plan& plan, const std::vector<TrialRecord>& records, const Findings& findings,
                     const std::vector<Suspect>& suspects, const RunContext& context, const char* status);
Json plan_json(const Plan& plan);
std::vector<TrialRecord> records_in(const Json& document, const std::string& name);

}  // namespace weir::trials
