// weir try: runs any program with different settings, and says which makes it fail, which is fastest, and which
// variable matters.
#include <fmt/format.h>

#include <cstdio>

#include "base/console.h"
#include "base/error.h"
#include "base/private_folder.h"
#include "base/units.h"
#include "cli/default_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "lab/try/experiment.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;
using trials::Experiment;
using trials::Plan;

constexpr const char* kTryUsage = "For example: weir try --env NCCL_ALGO=Ring,Tree -- ./train.sh";

struct TryFlags {
  std::vector<std::string> words, variables, hashed;
  std::string count = "10", metric, timeout, rate = "30%", threshold = "5%", seed = "1", output;
  bool is_higher_better = false, is_failures_only = false, resumes = false, is_forced = false, is_strict = false,
       is_quiet = false, is_json = false;

  bool prints_json() const { return is_json || output == "-"; }

  void add_to(CommandSyntax syntax) {
    syntax.add("commands WORD", words, "after --: one program and its arguments; without it: commands, each quoted");
    syntax.add("--env NAME=A,B", variables,
               "a variable and its values: NAME=A,B,C; an empty item is unset; repeatable");
    syntax.add("--trials N", count, "of each setting in the full matrix, which is the most that is run");
    syntax.add("--metric PATTERN", metric, "compare the last number that its group finds in the output, not wall time");
    syntax.add("--higher-is-better", is_higher_better, "the metric is a rate");
    syntax.add("--timeout DURATION", timeout, "a longer trial is a hang, and fails: 30s, 5m (default: none)");
    syntax.add("--hash PATH", hashed, "results must be the same: a file that trials write, - is stdout; repeatable");
    syntax.add("--failures-only", is_failures_only, "only find out what makes it fail, in fewer trials");
    syntax.add("--rate PERCENT", rate, "rarer failures need not be found");
    syntax.add("--threshold PERCENT", threshold, "smaller differences do not matter");
    syntax.add("--seed N", seed, "of the order of trials");
    syntax.add("--output,-o PATH", output, "folder (default: results/try; -: print the document, and keep no file)");
    syntax.add("--json", is_json, "print the document (weir.trials/2), and no text");
    syntax.add("--resume", resumes, "keep the trials that the folder has, run the others");
    syntax.add("--force,-f", is_forced, "replace the trials of a folder that has some");
    syntax.add("--strict", is_strict, "exit 4 where the answer is not clear");
    syntax.add("--quiet,-q", is_quiet, "print the result only");
    syntax.footer(
        "Exit code: 0 no setting is worse than the first, 1 the program always fails,\n"
        "2 bad input, 3 a setting fails or is slower than the first, 4 unclear (--strict), 130 interrupted.");
  }
};

void check_program(const std::string& name) {
  if (!find_program(name)) reject(fmt::format("{}: no such program", name), "Give a path, or a name that PATH has.");
}

Plan plan_of(const TryFlags& flags) {
  Plan plan;
  std::vector<trials::Factor> factors;
  if (const auto program = words_after_mark()) {
    if (program->empty()) reject("a program is required after --", kTryUsage);
    if (flags.words.size() > program->size())
      reject(fmt::format("{}: unexpected word before --", flags.words[0]), kTryUsage);
    plan.commands = {*program};
  } else {
    if (flags.words.empty()) reject("a program is required", kTryUsage);
    for (const std::string& text : flags.words) plan.commands.push_back(trials::split_words(text));
    if (plan.commands.size() > 1) factors.push_back({"command", {flags.words.begin(), flags.words.end()}});
  }
  for (const auto& command : plan.commands) check_program(command[0]);
  for (const std::string& text : flags.variables) {
    factors.push_back(parse_variable_axis(text));
    for (std::size_t i = 0; i + 1 < factors.size(); ++i)
      if (factors[i].name == factors.back().name)
        reject(fmt::format("--env {}: given twice", factors.back().name), "List all its values after one --env.");
  }
  plan.seed = seed_of(flags.seed);
  plan.design = trials::design_of(std::move(factors), plan.seed);
  plan.trials = static_cast<std::size_t>(number_within("--trials", flags.count, 1, 10'000));
  if (!flags.timeout.empty()) plan.timeout_s = seconds_of("--timeout", flags.timeout);
  plan.metric = flags.metric;
  if (flags.is_higher_better && flags.metric.empty())
    reject("--higher-is-better: there is no --metric", "Wall time is always better when it is lower.");
  plan.is_less_better = !flags.is_higher_better;
  plan.hashed = flags.hashed;
  plan.is_failures_only = flags.is_failures_only;
  plan.rate = share_of("--rate", flags.rate, 0.99);
  plan.threshold = share_of("--threshold", flags.threshold);
  return plan;
}

fs::path folder_of(const TryFlags& flags) {
  if (flags.output.empty()) return default_output("results/try", "", earlier_output(flags.is_forced, flags.resumes));
  const fs::path folder = flags.output;
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
    reject(fmt::format("--output {}: exists and is not a folder", flags.output));
  if (fs::exists(folder / "trials.json", ignored) && !flags.is_forced && !flags.resumes)
    reject(fmt::format("--output {}: has trials already", flags.output),
           "Add --resume to continue them, --force to replace them, or use another folder.");
  return folder;
}

void print_trial(const Plan& plan, const trials::TrialRecord& record, std::size_t count) {
  const std::string value = record.metric ? fmt::format(", {:g}", *record.metric) : "";
  print_out("{:>4}/{}  {}: {}, {}{}\n", count, plan.matrix(),
            words_for(plan.design, plan.design.settings[record.setting]),
            record.failure.empty() ? "ok" : "failed: " + record.failure, format_duration(record.duration_ns), value);
  flush_out();
}

int execute_try(const TryFlags& flags) {
  Plan plan = plan_of(flags);
  catch_interrupts();  // before there is a temporary folder
  std::optional<PrivateFolder> unkept;
  if (flags.output == "-") {
    if (flags.resumes) reject("--resume: -o - keeps no trials", "Name the folder that has them.");
    unkept.emplace();
  }
  const fs::path folder = unkept ? unkept->path() : folder_of(flags);
  Experiment experiment(std::move(plan), folder, run_context());
  if (flags.resumes) experiment.resume();
  const std::size_t kept = experiment.records().size();
  const bool is_quiet = flags.is_quiet || flags.prints_json();
  ProgressLine line(flags.is_quiet || !flags.prints_json());  // else each trial has a line
  if (flags.prints_json()) line.show("trials", static_cast<int>(kept), static_cast<int>(experiment.plan().matrix()));
  if (kept > 0 && !is_quiet) print_out("Continuing after {}.\n", counted(kept, "trial"));
  const bool is_complete =
      experiment.run(catch_interrupts(), [&](const trials::TrialRecord& record, std::size_t count) {
        if (!is_quiet) print_trial(experiment.plan(), record, count);
        line.show(words_for(experiment.plan().design, experiment.plan().design.settings[record.setting]),
                  static_cast<int>(count), static_cast<int>(experiment.plan().matrix()));
      });
  line.clear();
  const Json document = experiment.document(is_complete ? "complete" : "interrupted");
  if (flags.prints_json()) {
    write_json(to_text(document));
  } else {
    print_out("{}{}", flags.is_quiet ? "" : "\n", report_text(trials_report(document)));
    print_out("\nWritten to {}\n", experiment.file().string());
  }
  if (!is_complete) {
    if (!flags.prints_json())
      print_out("Interrupted after {}. The same command with --resume -o {} runs the rest.\n",
                counted(experiment.records().size(), "trial"), folder.string());
    return kExitInterrupted;
  }
  return exit_code_of(experiment.findings(), flags.is_strict);
}

}  // namespace

CliCommand try_settings() {
  return command("try", "which setting makes any program fail, or slow: trials in random order", execute_try);
}

}  // namespace weir::cli
