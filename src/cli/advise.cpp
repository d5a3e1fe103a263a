// weir advise: what would make the program of a trace faster, by how much, and whether that is true.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/private_folder.h"
#include "base/units.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/trace_flags.h"
#include "lab/advise/advice.h"
#include "lab/try/experiment.h"
#include "report/history/predictions.h"
#include "report/text/documents.h"
#include "run/analyze.h"
#include "trace/analyse/slice.h"
#include "trace/clock_alignment.h"
#include "trace/merge.h"

namespace weir::cli {
namespace {

constexpr std::int64_t kLongestStepNs = 3'600'000'000'000;

struct AdviseFlags : DocumentOutput {
  std::string first;
  std::vector<std::string> more;
  TraceFlags trace;
  std::string queues, untraced, metric, trials = "9", db;
  bool is_proof = false, is_higher_better = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("trace FILE", first, "a trace in any format that `weir analyze` reads (-: standard input)");
    syntax.add("more WORD", more, "files of other ranks; after --: the program of --prove, with its arguments");
    syntax.add("--queues N", queues, "hardware queues with which the program ran (default: what its driver uses)");
    syntax.add("--untraced DURATION", untraced, "a step without the profiler, 3.2ms: predictions are then for that");
    syntax.add("--prove", is_proof, "run the program after -- with and without what is advised, and compare");
    syntax.add("--metric PATTERN", metric,
               "prove: compare the last number that its group finds in the output, not wall time");
    syntax.add("--higher-is-better", is_higher_better, "prove: the metric is a rate");
    syntax.add("--trials N", trials, "prove: processes of each setting, at most");
    syntax.add("--db PATH", db,
               "prove: keep prediction and measurement in this history, and say how often they agreed");
    trace.add_to(syntax);
    DocumentOutput::add_to(syntax);
    syntax.footer("Exit code: 0 fine, 1 the program of --prove always fails, 2 bad input, 130 interrupted.");
  }
};

// What is before --.
std::vector<std::string> files_of(const AdviseFlags& flags) {
  if (flags.first.empty() || (flags.more.empty() && words_after_mark() && !words_after_mark()->empty()))
    reject("a trace is required", "For example: weir advise trace.json");
  std::vector<std::string> files = {flags.first};
  const std::size_t after = words_after_mark() ? words_after_mark()->size() : 0;
  files.insert(files.end(), flags.more.begin(), flags.more.end() - static_cast<std::ptrdiff_t>(after));
  return files;
}

// The setting to prove: the first that is a variable, or else, to see that it should be left, the best of those.
const advise::Prediction* provable(const advise::Advice& advice) {
  const auto is_variable = [](const advise::Prediction& one) { return one.what.effort == advise::Effort::variable; };
  for (const std::size_t index : advice.advised)
    if (is_variable(advice.predictions[index])) return &advice.predictions[index];
  const advise::Prediction* best = nullptr;
  for (const advise::Prediction& one : advice.predictions)
    if (is_variable(one) && (best == nullptr || one.gain > best->gain)) best = &one;
  return best;
}

Json proof_of(const AdviseFlags& flags, const advise::Advice& advice, bool& is_interrupted) {
  const advise::Prediction* const one = provable(advice);
  if (one == nullptr)
    return {{"setting", nullptr},
            {"trials", 0},
            {"predicted_gain", nullptr},
            {"measured_gain", nullptr},
            {"interval", nullptr},
            {"verdict", nullptr},
            {"reason", "nothing that a variable could change was asked"}};
  trials::Plan plan;
  plan.commands = {*words_after_mark()};
  const std::string& setting = one->what.setting;
  const std::size_t equals = setting.find('=');
  const std::string name = setting.substr(0, equals);
  // As the program ran: with its own setting, or without any.
  const auto before = flags.queues.empty() ? std::nullopt : std::optional(flags.queues);
  plan.design = trials::design_of({{name, {before, setting.substr(equals + 1)}}}, 1);
  plan.trials = static_cast<std::size_t>(number_within("--trials", flags.trials, 2, 10'000));
  plan.metric = flags.metric;
  plan.is_less_better = !flags.is_higher_better;
  plan.threshold = advise::kWorthwhile;
  const PrivateFolder folder;
  trials::Experiment experiment(std::move(plan), folder.path(), run_context());
  ProgressLine line(flags.is_quiet);
  line.show(setting, 0, static_cast<int>(experiment.plan().matrix()));
  is_interrupted = !experiment.run(catch_interrupts(), [&](const trials::TrialRecord&, std::size_t count) {
    line.show(setting, static_cast<int>(count), static_cast<int>(experiment.plan().matrix()));
  });
  line.clear();
  const trials::Findings findings = experiment.findings();
  Json proof = {{"setting", setting},
                {"trials", findings.trial_count()},
                {"predicted_gain", one->gain},
                {"measured_gain", nullptr},
                {"interval", nullptr},
                {"verdict", nullptr},
                {"reason", nullptr}};
  if (findings.failure_count() > 0)
    proof["reason"] = fmt::format("{} of {} trials failed", findings.failure_count(), findings.trial_count());
  if (findings.changes.size() > 1) {
    // A rate that rises by a third is a step that takes a quarter less.
    const weir::Change& change = findings.changes[1];
    const auto gain = [&](double ratio) { return flags.is_higher_better ? 1 - 1 / ratio : 1 - ratio; };
    proof["verdict"] = name_of(change.verdict);
    if (change.ratio) proof["measured_gain"] = gain(*change.ratio);
    if (change.interval) {
      const double a = gain(change.interval->low), b = gain(change.interval->high);
      proof["interval"] = {std::min(a, b), std::max(a, b)};
    }
  }
  return proof;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Keeps the proof, and adds to it how often earlier predictions were right.
void keep(const std::string& db, const advise::Advice& advice, Json& proof) {
  const advise::Prediction* const one = provable(advice);
  if (one == nullptr || db.empty()) return;
  const auto gain_of = [&](double step_ns) { return 1 - step_ns / advice.step_ns; };
  history::KeptPrediction kept{wall_time(),
                               joined(*words_after_mark()),
                               one->what.setting,
                               one->gain,
                               gain_of(one->high_ns),
                               gain_of(one->low_ns),
                               {},
                               {},
                               {}};
  if (proof["measured_gain"].is_number()) kept.measured = proof["measured_gain"].get<double>();
  if (proof["interval"].is_array()) {
    kept.measured_low = proof["interval"][0].get<double>();
    kept.measured_high = proof["interval"][1].get<double>();
  }
  history::add_prediction(db, kept);
  const history::PredictionRecord record = history::prediction_record(db);
  proof["record"] = {{"proven", record.proven},
                     {"right", record.right},
                     {"half_within", json_of(record.half_within)},
                     {"all_within", json_of(record.all_within)}};
}

int execute_advise(const AdviseFlags& flags) {
  flags.check_output();
  const std::vector<std::string> names = files_of(flags);
  if (!flags.db.empty() && !flags.is_proof) reject("--db keeps what --prove measured", "Add --prove -- PROGRAM.");
  if (flags.is_proof && (!words_after_mark() || words_after_mark()->empty()))
    reject("--prove: a program is required after --",
           "For example: weir advise trace.json --prove -- python3 train.py");
  if (!flags.is_proof && words_after_mark())
    reject("a program after -- is for --prove", "Add --prove, or leave the program out.");
  advise::AdviceOptions options;
  options.command_line = run_context().command_line;
  if (!flags.queues.empty()) options.queues = number_within("--queues", flags.queues, 1, 128);
  if (!flags.untraced.empty())
    options.untraced_ns = static_cast<double>(duration_of("--untraced", flags.untraced, 1, kLongestStepNs));

  ProgressLine line(flags.is_quiet);
  line.show("reading", 0, 1);
  std::vector<ImportedFile> files;
  std::vector<Timeline> parts;
  Timeline timeline;
  std::optional<advise::Advice> advice;
  try {
    ImportOptions import = flags.trace.import_options();
    import.has_operations = true;
    std::vector<std::filesystem::path> paths;
    for (const std::string& name : names) paths.emplace_back(input_path(name));
    for (ImportedTrace& trace : import_traces(paths, import)) {
      files.insert(files.end(), trace.files.begin(), trace.files.end());
      parts.push_back(std::move(trace.timeline));
    }
    timeline = merge(std::move(parts));
    if (const auto alignment = align_clocks(timeline)) {
      if (!alignment->is_aligned)
        reject("the clocks of the ranks are not comparable: " + alignment->summary, "Give the trace of one rank.");
      apply_alignment(timeline, *alignment);
    }
    if (const auto window = window_in(timeline, window_named(flags.trace.window))) timeline = within(timeline, *window);
    options.progress = [&](std::size_t done, std::size_t all) {
      if (catch_interrupts()) throw Interrupted();
      line.show("what if", static_cast<int>(done), static_cast<int>(all));
    };
    advice = advise::advise(timeline, options);
  } catch (const Interrupted&) {
    line.clear();
    return kExitInterrupted;
  }
  line.clear();
  Json document = advise::advice_json(*advice, timeline, files, options);
  bool is_interrupted = false;
  if (flags.is_proof && advice->reason.empty()) {
    Json proof = proof_of(flags, *advice, is_interrupted);
    proof["record"] = Json();
    if (!is_interrupted) keep(flags.db, *advice, proof);
    document["proof"] = std::move(proof);
  }
  flags.print(document, std::get<TextReport>(text_list::advice(document)));
  if (is_interrupted) return kExitInterrupted;
  return 0;
}

}  // namespace

CliCommand advise() {
  return command("advise", "say what would make a traced program faster, by how much, and prove it", execute_advise);
}

}  // namespace weir::cli
