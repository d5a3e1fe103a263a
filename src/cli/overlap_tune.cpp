// weir overlap tune: searches for the settings that expose the least communication; each trial is a separate process.
#include "lab/overlap/overlap_tune.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/overlap_flags.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "lab/overlap/overlap.h"
#include "report/text/documents.h"
#include "run/children.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

struct OverlapTuneFlags {
  OverlapFlags config;
  std::string budget = "5m";
  DocumentFile document;
  bool is_quiet = false, is_forced = false;

  void add_to(CommandSyntax syntax) {
    config.add_to(syntax);
    syntax.add("--budget DURATION", budget, "how long to search: 30s, 5m, 1h");
    document.add_to(syntax, "write all trials (weir.overlap_tune/2) to this file (-: standard output)");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
    syntax.add("--force,-f", is_forced, "replace an existing file");
  }
};

// The config's own value comes first, then others that may be worth a try.
std::vector<TuneAxis> axes_of(const OverlapConfig& config, const DeviceInfo& info) {
  std::vector<TuneAxis> axes;
  const auto add = [&](const std::string& key, const std::string& initial, std::vector<std::string> others) {
    TuneAxis axis{key, {initial}};
    for (std::string& other : others)
      if (std::find(axis.values.begin(), axis.values.end(), other) == axis.values.end())
        axis.values.push_back(std::move(other));
    axes.push_back(std::move(axis));
  };
  const auto or_else = [&](const char* key, const char* fallback) {
    const std::string value = config.value(key);
    return value.empty() ? std::string(fallback) : value;
  };
  if (config.is_ddp()) {
    add("ddp.bucket_kib", config.value("ddp.bucket_kib"), {"256", "1024", "4096", "25600", "0"});
  } else {
    add("fsdp.prefetch", or_else("fsdp.prefetch", "1"), {"0", "1", "2", "4"});
    add("fsdp.reshard_after_forward", or_else("fsdp.reshard_after_forward", "1"), {"1", "0"});
    add("fsdp.bucket_kib", config.value("fsdp.bucket_kib"), {"0", "256", "1024", "4096"});
  }
  add("run.placement", config.value("run.placement"), {"natural", "critical_path"});
  add("run.streams", config.value("run.streams"), {"4", "6", "8"});
  if (info.max_hardware_queues > 0) {
    const int now = info.hardware_queues.value.value_or(8);
    std::vector<std::string> others;
    for (const int queues : {now / 2, 2 * now, 4 * now})
      if (queues >= 1 && queues <= std::min(info.max_hardware_queues, 128)) others.push_back(std::to_string(queues));
    add("run.hw_queues", config.value("run.hw_queues"), others);
  }
  return axes;
}

int execute_overlap_tune(const OverlapTuneFlags& flags) {
  if (job_ranks().count > 1)
    reject("overlap tune: this job has several ranks", "Start it as one process with --ranks: trials start their own.");
  const double budget = seconds_of("--budget", flags.budget);
  const OverlapConfig config = flags.config.load();
  if (!config.sweeps.empty())
    reject(fmt::format("{}: it sweeps {}", flags.config.file, config.sweeps[0].first),
           fmt::format("Fix it (--set {}=...): the search chooses by itself.", config.sweeps[0].first));
  if (!config.variables.empty())
    reject(fmt::format("{}: the search varies no variables of the environment", config.variables[0].name),
           "Export it before weir starts, and add --no-env where the config has it; `weir overlap` takes --env.");
  const int ranks = flags.config.ranks_of(config);
  const std::string output = flags.document.path();
  if (!output.empty()) check_writable(output, flags.is_forced);
  // Closed again before the first trial, so that the trial has the device to itself.
  const DeviceInfo info = open_device(config.value("run.device"), device_options("", {}))->info();
  check_overlap(info, config, {0, ranks, true});  // an error in the config would fail every trial
  const std::vector<TuneAxis> axes = axes_of(config, info);
  // Every trial gets the device that was found; ranks choose by themselves.
  OverlapFlags trial_flags = flags.config;
  if (ranks == 1) trial_flags.device = child_device(info, config.value("run.device"));

  ProgressLine line(flags.is_quiet);
  const std::int64_t begun = now_ns();
  int done = 0;
  TuneControl control;
  control.budget_seconds = budget;
  control.elapsed_seconds = [&] { return static_cast<double>(now_ns() - begun) * 1e-9; };
  control.run = [&](TuneTrial& trial) {
    ChildRequest child;
    child.output_flag = "--summary";
    std::vector<std::string> settings;
    for (std::size_t i = 0; i < axes.size(); ++i) settings.push_back(axes[i].key + "=" + trial.values[i]);
    child.arguments = trial_flags.words(settings, ranks);
    line.show(fmt::format("trial {}", ++done), static_cast<int>(control.elapsed_seconds()), static_cast<int>(budget));
    const ChildOutcome outcome = run_child(child, catch_interrupts());
    if (outcome.end == ChildEnd::interrupted) return false;
    if (outcome.end != ChildEnd::done) {
      trial.failure = outcome.message;
      return true;
    }
    const Json& summary = outcome.document;
    const auto number = [](const Json& value) {
      return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
    };
    trial.exposed_ns = number(summary["overlap"]["exposed_ns"]);
    trial.efficiency = number(summary["overlap"]["efficiency"]);
    trial.memory_bytes = number(summary["memory_bytes"]);
    if (summary["step_ns"]["overlapped"].is_object()) trial.step_ns = number(summary["step_ns"]["overlapped"]["p50"]);
    return true;
  };
  const TuneResult result = tune_overlap(axes, control);
  line.clear();
  Json document = tune_json(axes, result);
  document["config"] = flags.config.file;
  const RunContext context = run_context();
  document["created"] = wall_time();
  document["weir"] = {{"version", WEIR_VERSION}, {"commit", WEIR_COMMIT}};
  document["command_line"] = context.command_line;
  document["environment"] = context.environment;
  document["device"] = to_json(info);
  document["ranks"] = ranks;
  if (!output.empty()) write_file(output, to_text(document), flags.is_forced);
  if (flags.document.prints_json()) {
    write_json(to_text(document));
  } else if (!flags.is_quiet) {
    print_out("{}", report_text(tune_report(document)));
    if (!output.empty()) print_out("\nWritten to {}\n", output);
  }
  if (result.is_interrupted) return kExitInterrupted;
  if (!result.best)
    fail(result.trials.empty() ? std::string("no trial ran")
                               : "every trial failed; the first: " + result.trials[0].failure);
  return 0;
}

}  // namespace

CliCommand overlap_tune() {
  return command("tune", "search settings for the least exposed communication", execute_overlap_tune);
}

}  // namespace weir::cli
