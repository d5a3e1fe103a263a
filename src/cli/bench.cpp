// weir bench: finds kernel packages, measures each in separate processes, writes reports, and compares with a baseline.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/private_folder.h"
#include "cli/bench_flags.h"
#include "cli/list.h"
#include "cli/process.h"
#include "lab/kernels/baseline.h"
#include "lab/kernels/document.h"
#include "lab/kernels/folder.h"
#include "lab/kernels/regression_entries.h"
#include "lab/kernels/rounds.h"
#include "report/figures/judgement.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

using bench::BenchFolder;
using bench::BenchPlan;

// Built libraries are kept between runs where this user has a cache folder.
fs::path cache_folder(const PrivateFolder& otherwise) {
  if (const auto cache = environment_variable("XDG_CACHE_HOME"); cache && fs::path(*cache).is_absolute())
    return fs::path(*cache) / "weir" / "kernels";
  if (const auto home = environment_variable("HOME"); home && fs::path(*home).is_absolute())
    return fs::path(*home) / ".cache" / "weir" / "kernels";
  return otherwise.path() / "cache";
}

int exit_code_of(const Json& summary, const BenchFlags& flags) {
  const Json& counts = summary["counts"];
  if (summary["status"] == "interrupted") return kExitInterrupted;
  for (const char* bad : {"failed", "crashed", "timed_out", "inaccurate"})
    if (counts[bad] != 0) return 1;
  const Json& regressions = summary["regressions"];
  if (!regressions.is_null()) {
    if (const int code = bench::exit_code(regressions); code != 0) return code;
    if (flags.is_strict && regressions["verdict"] == "ambiguous") return 4;
  }
  return 0;
}

class BenchRun {
 public:
  explicit BenchRun(const BenchFlags& flags)
      : flags_(flags), options_(flags.options()), regression_(flags.regression()), settings_{options_} {}

  int run() {
    const package::Discovery discovery = bench::find_packages(options_);
    const std::optional<Json> facts = bench::find_facts(options_, catch_interrupts());
    if (!facts) return kExitInterrupted;
    settings_.facts = *facts;
    const BenchPlan plan = bench::plan_bench(
        discovery, options_, settings_.facts,
        {environment_variable("PATH").value_or("/usr/bin:/bin"), environment_variable("LD_LIBRARY_PATH").value_or("")});
    if (flags_.is_list) return list(plan);
    flags_.document_output.check_output();
    flags_.ci.check(flags_.document_output.is_forced,
                    flags_.document_output.report == "json" && flags_.document_output.output.empty());
    flags_.exports.check(flags_.document_output.is_forced);
    // Before anything is measured or replaced: an unusable baseline must not cost a run, and it may be the very report
    // in the output folder.
    const Json baseline =
        flags_.compare_to.empty() ? Json() : bench::load_baseline(flags_.compare_to, flags_.output_dir);
    if (!flags_.compare_to.empty()) bench::compared_summary(baseline, flags_.compare_to);
    BenchFolder folder(flags_.output_dir, flags_.document_output.is_forced);
    settings_.cache = cache_folder(scratch_);
    settings_.include = scratch_.path() / "include";
    settings_.compiler = environment_variable("CXX").value_or("c++");
    const Json environment = bench::bench_environment(run_context().environment, settings_.facts, settings_.compiler);
    folder.write("env.json", environment);
    folder.write("kernel_manifest.json", package::manifest_document(discovery, plan.skipped));
    const bool is_complete = measure(plan, folder);
    Json summary = summarise(plan, environment, is_complete);
    if (!flags_.compare_to.empty() && is_complete)
      summary["regressions"] = bench::compare_summaries(baseline, summary, flags_.compare_to, regression_);
    deliver(summary, folder);
    folder.check();
    flags_.exports.write({&summary, 1}, flags_.document_output.is_forced);
    flags_.ci.report(
        judge_bench(summary, flags_.is_strict, exit_code_of(summary, flags_)),
        [&](std::size_t most) { return github_excerpt(report_markdown(bench_report(summary, true)), most); },
        flags_.document_output.is_forced);
    if (summary["cases"].size() == summary["counts"]["skipped"] && is_complete)
      fail("nothing could run: every case was skipped", "The table above has the reasons.");
    return exit_code_of(summary, flags_);
  }

 private:
  int list(const BenchPlan& plan) const {
    const Json document = bench::plan_document(plan, options_);
    flags_.document_output.print(document, bench_plan_report(document));
    return 0;
  }

  bool measure(const BenchPlan& plan, BenchFolder& folder) {
    results_.emplace(plan);
    for (std::size_t i = 0; i < plan.packages.size(); ++i) save(plan, i, folder);
    ProgressLine progress(flags_.document_output.is_quiet);
    // If this is interrupted, the rounds stop at once as well, and report what was not measured.
    if (options_.has_roofline)
      bench::find_ceilings(plan, settings_, catch_interrupts(), [&](const std::string& backend) {
        progress.show(fmt::format("what {} can do at best", backend), 0, 1);
      });
    bench::BenchEvents events;
    events.began = [&](const std::string& what, std::size_t done, std::size_t total) {
      progress.show(what.substr(0, 44), static_cast<int>(done), static_cast<int>(total));
    };
    events.saved = [&](std::size_t package) { save(plan, package, folder); };
    events.measured = [&](const Json& entry, int round) {
      if (!flags_.is_verbose) return;
      progress.clear();
      fmt::print(stderr, "round {}: {}\n", round + 1, bench_line(entry));
    };
    return bench::run_rounds(plan, settings_, events, *results_, catch_interrupts());
  }

  void save(const BenchPlan& plan, std::size_t package, BenchFolder& folder) const {
    const std::vector<Json> entries = results_->entries(package);
    if (!entries.empty())
      folder.write_kernel(plan.packages[package].name, bench::kernel_document(plan.packages[package].name, entries));
  }

  Json summarise(const BenchPlan& plan, const Json& environment, bool is_complete) const {
    Json options = options_.to_json();
    options["command_line"] = own_arguments();
    Json summary = bench::summary_document(environment, options, settings_.ceilings, results_->entries(), plan.skipped);
    if (!is_complete) summary["status"] = "interrupted";
    return summary;
  }

  void deliver(const Json& summary, BenchFolder& folder) const {
    folder.write("summary.json", summary);
    folder.write("summary.md", report_markdown(bench_report(summary, true)));
    // Without a baseline, the file of an earlier run would contradict the new summary.
    if (!summary["regressions"].is_null() || folder.has("regressions.md"))
      folder.write("regressions.md", report_markdown(regressions_report(summary["regressions"])));
    flags_.document_output.print(
        summary, [&] { return report_text(bench_report(summary, false)); },
        [&] { return report_markdown(bench_report(summary, true)); });
    if (!flags_.document_output.is_quiet && flags_.document_output.report != "json")
      fmt::print("\nReports are in {}\n", folder.path().string());
  }

  const BenchFlags& flags_;
  const bench::BenchOptions options_;
  const bench::RegressionOptions regression_;
  const PrivateFolder scratch_;
  bench::BenchSettings settings_;
  std::optional<bench::BenchResults> results_;
};

int execute(const BenchFlags& flags) {
  if (!flags.child.empty()) {
    bench::run_bench_child(flags.child);
    // Destructors of loaded packages are not run: the results have been sent, so they could only do harm.
    ::_exit(0);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // reports a file-size limit as a write error instead of dying
  return BenchRun(flags).run();
}

}  // namespace

CliCommand bench() {
  return command("bench", "find kernel packages, measure them all, report, catch regressions", execute);
}

}  // namespace weir::cli
