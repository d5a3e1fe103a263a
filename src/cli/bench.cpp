// weir bench: finds kernel packages, measures each in separate processes, writes reports, and compares with a baseline.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/process.h"
#include "cli/bench_baseline.h"
#include "cli/bench_child.h"
#include "cli/bench_facts.h"
#include "cli/bench_flags.h"
#include "cli/bench_rounds.h"
#include "cli/list.h"
#include "cli/private_folder.h"
#include "cli/process.h"
#include "lab/kernels/document.h"
#include "lab/kernels/regression_entries.h"
#include "report/figures/judgement.h"
#include "report/text/documents.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

using bench::value_at;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// g++ (Debian 12.2.0-14) 12.2.0
// Cuda compilation tools, release 12.8, V12.8.93
// HIP version: 6.2.41133-dd7f95766
Json version_of(const std::string& compiler) {
  const auto said = printed_by({compiler, "--version"});
  if (!said) return nullptr;
  std::istringstream lines(*said);
  for (std::string line; std::getline(lines, line);)
    if (line.find("release ") != std::string::npos) return line;
  // A wrapper whose compiler is missing prints something else, with exit code 0.
  return said->find("Traceback") == std::string::npos ? Json(first_line(*said)) : Json();
}

// The state of the working folder. Hooks from its configuration are not run.
Json git_state() {
  const auto commit = printed_by({"git", "rev-parse", "--verify", "HEAD"});
  if (!commit) return nullptr;
  const auto branch = printed_by({"git", "rev-parse", "--abbrev-ref", "HEAD"});
  const auto changes = printed_by(
      {"git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no"});
  return {{"commit", first_line(*commit)},
          {"branch", branch ? Json(first_line(*branch)) : Json()},
          {"is_changed", changes ? Json(!changes->empty()) : Json()}};
}

// weir.bench_environment/1: what every result contains (measure/environment.h), and "cpu_model", "devices",
// "compilers", "git". `facts` is as in cli/bench_facts.h.
Json bench_environment(const Json& facts, const std::string& compiler) {
  Json environment = {{"schema", "weir.bench_environment/1"}};
  const Json machine = run_context().environment;
  for (const auto& [key, value] : machine.items()) environment[key] = value;
  environment["weir"] = WEIR_VERSION;
  environment["cpu_model"] = value_at(facts, {"machine", "cpu_model"});
  environment["devices"] = value_at(facts, {"backends"});
  environment["compilers"] = {
      {"host", version_of(compiler)}, {"nvcc", version_of("nvcc")}, {"hipcc", version_of("hipcc")}};
  environment["git"] = git_state();
  return environment;
}

// The output folder: env.json, kernel_manifest.json, kernels/NAME.json, summary.json, summary.md, regressions.md.
// Replaces Weir's own reports and nothing else. Knows documents as text.
class BenchFolder {
 public:
  // Creates the folder. Rejects one that cannot be created or written to, and one where a report would replace a file
  // that is not Weir's, unless `is_forced`.
  BenchFolder(std::filesystem::path folder, bool is_forced);

  // Writes the whole file or nothing. A failure (a full disk) is remembered and the run continues, so that measurements
  // can still be printed.
  void write(const std::string& name, const std::string& text);
  void write(const std::string& name, const Json& document) { write(name, to_text(document)); }
  void write_kernel(const std::string& package, const Json& document);
  bool has(const std::string& name) const;

  const std::filesystem::path& path() const { return folder_; }
  // Throws where something could not be written.
  void check() const;

 private:
  std::filesystem::path folder_;
  std::string failure_;
};

constexpr std::string_view kKernels = "kernels";

// {"schema": "weir.bench/1", ...
// # weir bench
// The beginning is enough to recognise it: a report may be large, or truncated.
bool is_ours(const fs::path& file) {
  std::ifstream from(file, std::ios::binary);
  std::string beginning(200, '\0');
  from.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(from.gcount()));
  if (file.extension() == ".md") return beginning.starts_with("# weir bench") || beginning.starts_with("# Regressions");
  return beginning.starts_with('{') && beginning.find("\"schema\": \"weir.") != std::string::npos;
}

void check_ours(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored) || is_ours(file)) return;
  reject(fmt::format("{}: would be replaced, and is no report of weir bench", file.string()),
         "Choose another --output-dir, or use --force.");
}

BenchFolder::BenchFolder(fs::path folder, bool is_forced) : folder_(std::move(folder)) {
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error))
    reject(fmt::format("--output-dir {}: is no folder", folder_.string()), "Name a folder: there are several files.");
  fs::create_directories(folder_ / kKernels, error);
  if (error)
    reject(fmt::format("--output-dir {}: cannot be made: {}", folder_.string(), error.message()),
           "Choose another folder.");
  for (const fs::path& one : {folder_, folder_ / kKernels})
    if (::access(one.c_str(), W_OK | X_OK) != 0)
      reject(fmt::format("--output-dir {}: cannot write into {}", folder_.string(), one.string()),
             "Choose another folder.");
  if (is_forced) return;
  for (const char* name : {"env.json", "kernel_manifest.json", "summary.json", "summary.md", "regressions.md"})
    check_ours(folder_ / name);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / kKernels, error))
    if (entry.path().extension() == ".json") check_ours(entry.path());
}

void BenchFolder::write(const std::string& name, const std::string& text) {
  try {
    write_file(folder_ / name, text, true);
  } catch (const Error& error) {
    if (failure_.empty()) failure_ = error.what();
  }
}

void BenchFolder::write_kernel(const std::string& package, const Json& document) {
  write(fmt::format("{}/{}.json", kKernels, package), to_text(document));
}

bool BenchFolder::has(const std::string& name) const {
  std::error_code ignored;
  return fs::exists(folder_ / name, ignored);
}

void BenchFolder::check() const {
  if (!failure_.empty()) fail(fmt::format("the report is not complete: {}", failure_), "Make room, and measure again.");
}

constexpr double kFactsLimitS = 60, kCeilingsLimitS = 120;

// A filter that matches nothing is a mistake, even if others match.
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

// Built libraries are kept between runs where this user has a cache folder.
fs::path cache_folder(const PrivateFolder& otherwise) {
  if (const auto cache = environment_variable("XDG_CACHE_HOME"); cache && fs::path(*cache).is_absolute())
    return fs::path(*cache) / "weir" / "kernels";
  if (const auto home = environment_variable("HOME"); home && fs::path(*home).is_absolute())
    return fs::path(*home) / ".cache" / "weir" / "kernels";
  return otherwise.path() / "cache";
}

// Empty: interrupted. A driver that crashes or hangs affects only its own backend.
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

// Measures each backend that the plan needs once, unless interrupted.
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
      settings.ceilings[backend] = nullptr;  // a roofline is optional: entries report that there is none
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
    flags_.document_output.check_output();
    flags_.ci.check(flags_.document_output.is_forced,
                    flags_.document_output.report == "json" && flags_.document_output.output.empty());
    flags_.exports.check(flags_.document_output.is_forced);
    // Before anything is measured or replaced: an unusable baseline must not cost a run, and it may be the very report
    // in the output folder.
    const Json baseline = flags_.compare_to.empty() ? Json() : load_baseline(flags_.compare_to, flags_.output_dir);
    if (!flags_.compare_to.empty()) bench::compared_summary(baseline, flags_.compare_to);
    BenchFolder folder(flags_.output_dir, flags_.document_output.is_forced);
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
    const Json document = plan_document(plan, options_);
    flags_.document_output.print(document, bench_plan_report(document));
    return 0;
  }

  bool measure(const BenchPlan& plan, BenchFolder& folder) {
    results_.emplace(plan);
    for (std::size_t i = 0; i < plan.packages.size(); ++i) save(plan, i, folder);
    ProgressLine progress(flags_.document_output.is_quiet);
    // If this is interrupted, the rounds stop at once as well, and report what was not measured.
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
  const BenchOptions options_;
  const bench::RegressionOptions regression_;
  const PrivateFolder scratch_;
  BenchSettings settings_;
  std::optional<BenchResults> results_;
};

int execute_bench(const BenchFlags& flags) {
  if (!flags.child.empty()) return run_bench_child(flags.child);
  std::signal(SIGXFSZ, SIG_IGN);  // reports a file-size limit as a write error instead of dying
  return BenchRun(flags).run();
}

}  // namespace

CliCommand bench() {
  return command("bench", "find kernel packages, measure them all, report, catch regressions", execute_bench);
}

}  // namespace weir::cli
