// weir bench: finds kernel packages, measures them all in processes of their own, writes reports, and compares with a
// baseline.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/options.h"
#include "cli/bench_baseline.h"
#include "cli/bench_child.h"
#include "cli/bench_environment.h"
#include "cli/bench_facts.h"
#include "cli/bench_flags.h"
#include "cli/bench_output.h"
#include "cli/bench_rounds.h"
#include "cli/list.h"
#include "cli/private_folder.h"
#include "cli/process.h"
#include "lab/kernels/document.h"
#include "lab/kernels/regression_entries.h"
#include "report/figures/judgement.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kFactsLimitS = 60, kCeilingsLimitS = 120;

// A word that takes nothing is a mistake, also beside others that do.
void check_filters(const BenchOptions& options, const package::Discovery& found) {
  std::vector<std::string> names;
  for (const package::Package& package : found.packages) names.push_back(package.name);
  for (const std::string& word : options.filters)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return filter_takes(word, name); }))
      reject(fmt::format("--filter {}: takes none of {} packages", word, names.size()), suggestion(word, names));
}

package::Discovery find_packages(const BenchOptions& options) {
  std::vector<fs::path> roots = options.paths;
  if (roots.empty())
    for (const char* usual : package::kUsualFolders) {
      std::error_code ignored;
      if (fs::is_directory(usual, ignored)) roots.emplace_back(usual);
    }
  const std::string where =
      options.paths.empty() ? "kernels/, src/kernels/ and integrations/kernels/ below this folder" : "--path";
  package::Discovery found = package::discover(roots);
  if (found.packages.empty())
    reject(fmt::format("no kernel package was found in {}", where),
           "A package is a folder with kernel.cpp, kernel.cu or kernel.cl in it; name one with --path DIR. "
           "docs/bench.md shows one step by step.");
  check_filters(options, found);
  return found;
}

// Built libraries are kept between runs where this user has a place for that.
fs::path cache_folder(const PrivateFolder& otherwise) {
  if (const auto cache = environment_variable("XDG_CACHE_HOME"); cache && fs::path(*cache).is_absolute())
    return fs::path(*cache) / "weir" / "kernels";
  if (const auto home = environment_variable("HOME"); home && fs::path(*home).is_absolute())
    return fs::path(*home) / ".cache" / "weir" / "kernels";
  return otherwise.path() / "cache";
}

// Nothing: interrupted. A driver that crashes or hangs costs its own backend.
std::optional<Json> find_facts(const BenchOptions& options) {
  Json backends = Json::object();
  for (const package::Backend backend : package::kBackends) {
    const std::string name(name_of(backend));
    try {
      backends[name] =
          ask_bench_child({{"task", "facts"}, {"backend", name}, {"device", options.device}}, kFactsLimitS);
      if (backends[name].is_null()) return std::nullopt;
    } catch (const Error& error) {
      backends[name] = absent_backend(fmt::format("looking for it failed: {}", error.what()));
    }
  }
  return put_together(backends);
}

// Backends that the plan needs, each measured once, unless we are interrupted.
void find_ceilings(const BenchPlan& plan, BenchSettings& settings, ProgressLine& progress) {
  for (const BenchUnit& unit : plan.units) {
    const std::string backend(name_of(unit.backend));
    if (settings.ceilings.contains(backend)) continue;
    progress.show(fmt::format("what {} can do at best", backend), 0, 1);
    try {
      Json found = ask_bench_child({{"task", "ceilings"},
                                    {"backend", backend},
                                    {"device", settings.options.device},
                                    {"threads", settings.options.threads}},
                                   kCeilingsLimitS);
      if (found.is_null()) return;
      settings.ceilings[backend] = std::move(found);
    } catch (const Error&) {
      settings.ceilings[backend] = nullptr;  // a roofline is a bonus: entries say that there is none
    }
  }
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
    const package::Discovery discovery = find_packages(options_);
    catch_interrupts();
    const std::optional<Json> facts = find_facts(options_);
    if (!facts) return kExitInterrupted;
    settings_.facts = *facts;
    const BenchPlan plan = plan_bench(discovery, options_, settings_.facts);
    if (flags_.is_list) return list(plan);
    flags_.telling.check_output();
    flags_.ci.check(flags_.telling.is_forced, flags_.telling.report == "json" && flags_.telling.output.empty());
    flags_.exports.check(flags_.telling.is_forced);
    // Before anything is measured or replaced: one that cannot be compared with must not cost a run, and it may be the
    // very report that is there.
    const Json baseline = flags_.compare_to.empty() ? Json() : load_baseline(flags_.compare_to, flags_.output_dir);
    if (!flags_.compare_to.empty()) bench::compared_summary(baseline, flags_.compare_to);
    BenchFolder folder(flags_.output_dir, flags_.telling.is_forced);
    settings_.cache = cache_folder(scratch_);
    settings_.include = scratch_.path() / "include";
    settings_.compiler = environment_variable("CXX").value_or("c++");
    const Json environment = bench_environment(settings_.facts, settings_.compiler);
    folder.write("env.json", environment);
    folder.write("kernel_manifest.json", package::manifest_document(discovery, plan.skipped));
    const bool is_complete = measure(plan, folder);
    Json summary = summarise(plan, environment, is_complete);
    if (!flags_.compare_to.empty() && is_complete)
      summary["regressions"] = bench::compare_summaries(baseline, summary, flags_.compare_to, regression_);
    deliver(summary, folder);
    folder.check();
    flags_.exports.write({&summary, 1}, flags_.telling.is_forced);
    flags_.ci.tell(
        judge_bench(summary, flags_.is_strict, exit_code_of(summary, flags_)),
        [&](std::size_t most) { return github_excerpt(report_markdown(bench_report(summary, true)), most); },
        flags_.telling.is_forced);
    if (summary["cases"].size() == summary["counts"]["skipped"] && is_complete)
      fail("nothing could run: every case was skipped", "The table above has the reasons.");
    return exit_code_of(summary, flags_);
  }

 private:
  int list(const BenchPlan& plan) const {
    const Json document = plan_document(plan, options_);
    flags_.telling.tell(document, bench_plan_report(document));
    return 0;
  }

  bool measure(const BenchPlan& plan, BenchFolder& folder) {
    results_.emplace(plan);
    for (std::size_t i = 0; i < plan.packages.size(); ++i) save(plan, i, folder);
    ProgressLine progress(flags_.telling.is_quiet);
    // Where this is interrupted the rounds are too, at once, and tell what was not measured.
    if (options_.has_roofline) find_ceilings(plan, settings_, progress);
    BenchEvents events;
    events.began = [&](const std::string& what, std::size_t done, std::size_t total) {
      progress.show(what.substr(0, 44), static_cast<int>(done), static_cast<int>(total));
    };
    events.saved = [&](std::size_t package) { save(plan, package, folder); };
    events.measured = [&](const Json& entry, int round) {
      if (!flags_.is_verbose) return;
      progress.clear();
      fmt::print(stderr, "round {}: {}\n", round + 1, bench_line(entry));
    };
    return run_rounds(plan, settings_, events, *results_);
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
    // Without a baseline one of an earlier run would contradict the summary beside it.
    if (!summary["regressions"].is_null() || folder.has("regressions.md"))
      folder.write("regressions.md", report_markdown(regressions_report(summary["regressions"])));
    flags_.telling.tell(
        summary, [&] { return report_text(bench_report(summary, false)); },
        [&] { return report_markdown(bench_report(summary, true)); });
    if (!flags_.telling.is_quiet && flags_.telling.report != "json")
      fmt::print("\nReports are in {}\n", folder.path().string());
  }

  const BenchFlags& flags_;
  const BenchOptions options_;
  const bench::RegressionOptions regression_;
  const PrivateFolder scratch_;
  BenchSettings settings_;
  std::optional<BenchResults> results_;
};

int execute(const BenchFlags& flags) {
  if (!flags.child.empty()) return run_bench_child(flags.child);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes is told like a full disk, not died of
  return BenchRun(flags).run();
}

}  // namespace

CliCommand bench() {
  return {"bench", "find kernel packages, measure them all, report, catch regressions",
          [](CommandSyntax syntax) -> std::function<int()> {
            const auto flags = std::make_shared<BenchFlags>();
            flags->add_to(syntax);
            syntax.footer(
                "Exit code: 0 fine, 1 a kernel failed, crashed, timed out or was inaccurate, 2 bad input,\n"
                "3 slower or less accurate than the baseline, 4 (--strict) too uncertain to say, 130 interrupted.");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
