// weir bench: finds kernel packages, measures each in separate processes, writes reports, and compares with a baseline.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/cache_folder.h"
#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/private_folder.h"
#include "base/secrets.h"
#include "cli/ci_flags.h"
#include "cli/command.h"
#include "cli/default_output.h"
#include "cli/document_output.h"
#include "cli/export_flags.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ready_files.h"
#include "lab/kernels/document.h"
#include "lab/kernels/folder.h"
#include "lab/kernels/options.h"
#include "lab/kernels/regression.h"
#include "lab/kernels/regression_entries.h"
#include "lab/kernels/rounds.h"
#include "measure/environment.h"
#include "report/figures/judgement.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

using bench::BenchFolder;
using bench::BenchPlan;

constexpr const char* kReports = "reports";

template <class Word>
std::vector<Word> words_of(const char* flag, const std::string& text, const char* what,
                           std::optional<Word> (*parse)(std::string_view), std::span<const Word> known) {
  std::vector<Word> words;
  if (text.empty()) return words;
  for (const std::string& name : parse_names(flag, text)) {
    const std::optional<Word> word = parse(name);
    if (!word) {
      std::vector<std::string> names;
      for (const Word one : known) names.emplace_back(name_of(one));
      reject(fmt::format("{} {}: unknown {} '{}'", flag, text, what, name),
             name == "gpu" || name == "nvidia" || name == "amd"
                 ? "Use cuda:0, hip:0 or opencl:0; without --device all are measured."
                 : suggestion(name, names));
    }
    if (std::find(words.begin(), words.end(), *word) == words.end()) words.push_back(*word);
  }
  return words;
}

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct BenchCommandFlags {
  std::vector<std::string> paths, devices;
  std::string iterations, warmup, precision, output, seed, filter, compare_to;
  std::string latency_threshold = "10%", accuracy_threshold = "1e-3";
  std::string stop = "iterations", budget = "30s", rounds, time_limit, threads;
  bool is_cold = false, leaves_roofline = false, is_list = false, is_strict = false, is_verbose = false;
  bool asks_changes = false;
  DocumentOutput document_output;
  CiFlags ci;
  ExportFlags exports;
  std::string child;  // set in a child of Weir: the file with its request

  void add_to(CommandSyntax syntax);
  // Each rejects bad values, naming the flag.
  void choose_devices(bench::BenchOptions& options) const;
  bench::BenchOptions options() const;
  bench::RegressionOptions regression() const;
};

void BenchCommandFlags::add_to(CommandSyntax syntax) {
  syntax.add("--path PATH", paths,
             "a package, or a folder of packages; may be repeated (default: kernels and others below this folder)");
  syntax.add("--filter PATTERN", filter, "packages: words of their names or patterns such as spmv*, with commas");
  syntax.add("--device NAME", devices,
             "where kernels run: cpu, cuda:0, hip:0, opencl:0, pytorch, jax, with commas (default: all that are here)");
  syntax.add("--precision NAME", precision,
             "fp64,fp32,fp16,bf16,fp8_e4m3,fp8_e5m2 (default: those of bench.yaml, or all of the kernel)");
  syntax.add("--iterations N", iterations, "samples of each case (default: bench.yaml, or 30)");
  syntax.add("--warmup N", warmup, "runs before the first sample, at least (default: bench.yaml, or 3)");
  syntax.add("--processes N", rounds,
             "processes that samples are divided over (default 5; 1 for fewer than 15 samples)");
  syntax.add("--stop NAME", stop, "what ends a case: so many iterations, a narrow interval, or entropy")
      .one_of({"iterations", "interval", "entropy"});
  syntax.add("--budget DURATION", budget, "measuring one case ends after this time: 500ms, 30s, 5m");
  syntax.add("--time-limit DURATION", time_limit,
             "one case is ended by force after this time (default: bench.yaml, or 120s)");
  syntax.add("--cold", is_cold, "empty caches before every run");
  syntax.add("--seed N", seed, "of the inputs (default: bench.yaml, or 1337)");
  syntax.add("--threads N", threads, "that a kernel may use on the CPU (default: all cores)");
  syntax.add("--no-roofline", leaves_roofline, "do not measure what the devices can do at best");
  syntax.add(
      "--baseline PATH|REF", compare_to,
      "a summary.json or a folder of reports to compare with, or a git ref that has one in the folder of -o (reports)");
  syntax.add("--git-changes", asks_changes,
             "also note whether tracked files differ from the commit (looks at all of them, with git's filters off)");
  syntax.add("--latency-threshold PERCENT", latency_threshold, "a slowdown up to this does not matter");
  syntax.add("--accuracy-threshold N", accuracy_threshold, "an error may grow by this much");
  syntax.add("--strict", is_strict, "exit 4 where a comparison is too uncertain to say");
  syntax.add("--list", is_list, "show what would run; measure and write nothing");
  syntax.add("--verbose,-v", is_verbose, "print each case as it is measured");
  syntax.add("--output,-o PATH", output,
             "folder for reports (default: reports, then reports-2 ...; -: print the summary, and write none)");
  syntax.add("--json", document_output.is_json, "print the summary (weir.bench/2), and no text");
  syntax.add("--format NAME", document_output.format, "form for people").one_of({"text", "markdown"});
  syntax.add("--force,-f", document_output.is_forced, "replace an earlier report");
  syntax.add("--quiet,-q", document_output.is_quiet, "print only the report");
  ci.add_to(syntax);
  exports.add_to(syntax);
  syntax.add("--child", child, "").hidden();
  syntax.footer(
      "Exit code: 0 fine, 1 a kernel failed, crashed, timed out or was inaccurate, 2 bad input,\n"
      "3 slower or less accurate than the baseline, 4 (--strict) too uncertain to say, 130 interrupted.");
}

// "cuda:1,cpu": backends, and which of their devices. A number alone is for all backends: an old spelling.
void BenchCommandFlags::choose_devices(bench::BenchOptions& options) const {
  std::string names;
  std::optional<int> index;
  for (const std::string& text : devices)
    for (const std::string& word : parse_names("--device", text)) {
      const bool is_number = parse_integer(word).has_value();
      const std::size_t colon = is_number ? 0 : std::min(word.find(':'), word.size());
      if (!is_number) names += (names.empty() ? "" : ",") + word.substr(0, colon);
      if (colon == word.size()) continue;
      const int number = one_count("--device", is_number ? word : word.substr(colon + 1), 0, 1023);
      if (index.value_or(number) != number)
        reject(fmt::format("--device {}: devices with different numbers are measured one after the other", text),
               fmt::format("Run `weir bench --device {}` by itself.", word));
      index = number;
    }
  options.backends =
      words_of<package::Backend>("--device", names, "device", package::parse_backend, package::kBackends);
  options.device = index.value_or(0);
}

bench::BenchOptions BenchCommandFlags::options() const {
  bench::BenchOptions options;
  for (const std::string& typed : paths) {
    std::error_code ignored;
    const std::string path = package_folder(typed);
    if (!std::filesystem::is_directory(path, ignored))
      reject(fmt::format("--path {}: is not a folder", path), "Name a package, or a folder that holds packages.");
    options.paths.emplace_back(path);
  }
  options.precisions =
      words_of<Precision>("--precision", precision, "precision", package::parse_precision, package::kPrecisions);
  choose_devices(options);
  if (!filter.empty()) options.filters = parse_names("--filter", filter);
  if (!iterations.empty()) options.iterations = one_count("--iterations", iterations, 1, 1'000'000);
  if (!warmup.empty()) options.warmup = one_count("--warmup", warmup, 0, 1'000'000);
  if (!rounds.empty()) options.rounds = one_count("--processes", rounds, 1, 100);
  if (!seed.empty()) options.seed = seed_of(seed);
  if (!time_limit.empty()) options.time_limit_s = seconds_of("--time-limit", time_limit);
  options.budget_s = seconds_of("--budget", budget);
  options.stop = static_cast<bench::Stop>(std::find(std::begin(bench::kStops), std::end(bench::kStops), stop) -
                                          std::begin(bench::kStops));
  options.threads =
      threads.empty() ? static_cast<int>(usable_cores().size()) : one_count("--threads", threads, 1, 4096);
  options.is_cold = is_cold;
  options.has_roofline = !leaves_roofline;
  return options;
}

bench::RegressionOptions BenchCommandFlags::regression() const {
  bench::RegressionOptions options;
  options.latency = share_of("--latency-threshold", latency_threshold, 10);
  options.accuracy =
      real_number("--accuracy-threshold", accuracy_threshold, 0, DBL_MAX, "not an error", "For example 1e-3.");
  return options;
}

int exit_code_of(const Json& summary, const BenchCommandFlags& flags) {
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
  explicit BenchRun(const BenchCommandFlags& flags)
      : flags_(flags), options_(flags.options()), regression_(flags.regression()), settings_{options_} {}

  int run() {
    progress_.show("looking at devices", 0, 1);
    const package::Discovery discovery = bench::find_packages(options_);
    const std::optional<Json> facts = bench::find_facts(options_, discovery, catch_interrupts());
    if (!facts) return kExitInterrupted;
    settings_.facts = *facts;
    progress_.clear();
    const BenchPlan plan = bench::plan_bench(
        discovery, options_, settings_.facts,
        {environment_variable("PATH").value_or("/usr/bin:/bin"), environment_variable("LD_LIBRARY_PATH").value_or("")});
    if (flags_.is_list) return list(plan);
    flags_.ci.check(flags_.document_output.is_forced, flags_.document_output.prints_json());
    flags_.exports.check(flags_.document_output.is_forced);
    // Before anything is measured or replaced: an unusable baseline must not cost a run, and it may be the very report
    // in the output folder.
    const bool is_kept = flags_.output != "-", is_named = is_kept && !flags_.output.empty();
    const Json baseline = flags_.compare_to.empty()
                              ? Json()
                              : bench::load_baseline(flags_.compare_to, is_named ? flags_.output : kReports);
    if (!flags_.compare_to.empty()) bench::compared_summary(baseline, flags_.compare_to);
    BenchFolder folder(!is_kept   ? scratch_.path() / kReports
                       : is_named ? fs::path(flags_.output)
                                  : default_output(kReports, "", earlier_output(flags_.document_output.is_forced)),
                       flags_.document_output.is_forced);
    // Built libraries are kept between runs where this user has a cache folder.
    settings_.cache = cache_folder("kernels").value_or(scratch_.path() / "cache");
    settings_.include = scratch_.path() / "include";
    settings_.compiler = environment_variable("CXX").value_or("");
    if (settings_.compiler.empty()) settings_.compiler = "c++";
    const Json environment =
        bench::bench_environment(run_context().environment, settings_.facts, settings_.compiler, flags_.asks_changes);
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
    ProgressLine& progress = progress_;
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
      print_err("round {}: {}\n", round + 1, bench_line(entry));
    };
    const bool is_complete = bench::run_units(plan, settings_, events, *results_, catch_interrupts());
    progress.clear();
    return is_complete;
  }

  void save(const BenchPlan& plan, std::size_t package, BenchFolder& folder) const {
    const std::vector<Json> entries = results_->entries(package);
    if (!entries.empty())
      folder.write_kernel(plan.packages[package].name, bench::kernel_document(plan.packages[package].name, entries));
  }

  Json summarise(const BenchPlan& plan, const Json& environment, bool is_complete) const {
    Json options = options_.to_json();
    options["command_line"] = recorded_command(own_arguments());
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
    if (!flags_.document_output.is_quiet && !flags_.document_output.prints_json())
      print_out("\nReports are in {}\n", folder.path().string());
  }

  const BenchCommandFlags& flags_;
  const bench::BenchOptions options_;
  const bench::RegressionOptions regression_;
  const PrivateFolder scratch_;
  ProgressLine progress_{flags_.document_output.is_quiet};
  bench::BenchSettings settings_;
  std::optional<bench::BenchResults> results_;
};

int execute_bench(BenchCommandFlags flags) {
  flags.document_output.is_json = flags.document_output.is_json || flags.output == "-";
  if (!flags.child.empty()) {
    catch_interrupts();
    on_interrupt([]() noexcept { end_at_once(128 + first_interrupt()); });  // it has nothing to save
    bench::run_bench_child(flags.child);
    // Destructors of loaded packages are not run: the results have been sent, so they could only do harm.
    ::_exit(0);
  }
  catch_interrupts();  // before it has a temporary folder
  return BenchRun(flags).run();
}

}  // namespace

CliCommand bench() {
  return command("bench", "find kernel packages, measure them all, report, catch regressions", execute_bench);
}

}  // namespace weir::cli
