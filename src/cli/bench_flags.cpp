#include "cli/bench_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>

#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/flag_values.h"
#include "cli/ready_files.h"
#include "measure/environment.h"

namespace weir::cli {
namespace {

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
      reject(fmt::format("{} {}: there is no {} '{}'", flag, text, what, name), suggestion(name, names));
    }
    if (std::find(words.begin(), words.end(), *word) == words.end()) words.push_back(*word);
  }
  return words;
}

}  // namespace

void BenchFlags::add_to(CommandSyntax syntax) {
  syntax.add(
      "--path DIR", paths,
      "a package, or a folder of packages; may be repeated (default: kernels, src/kernels, integrations/kernels)");
  syntax.add("--filter", filter, "packages: words of their names or patterns such as spmv*, with commas");
  syntax.add("--backends", backends, "cpu,cuda,hip,opencl (default: those that are here)");
  syntax.add("--precision", precision, "fp64,fp32,fp16,bf16 (default: those of bench.yaml, or all of the kernel)");
  syntax.add("--iters", iterations, "samples of each case (default: bench.yaml, or 30)");
  syntax.add("--warmup", warmup, "runs before the first sample, at least (default: bench.yaml, or 3)");
  syntax.add("--rounds", rounds, "processes that samples are divided over (default 5; 1 for fewer than 15 samples)");
  syntax.add("--stop", stop, "what ends a case: so many iterations, a narrow interval, or entropy")
      .one_of({"iterations", "interval", "entropy"});
  syntax.add("--budget", budget, "measuring one case ends after this time: 500ms, 30s, 5m");
  syntax.add("--time-limit", time_limit, "one case is ended by force after this time (default: bench.yaml, or 120s)");
  syntax.add("--cold", is_cold, "empty caches before every run");
  syntax.add("--seed", seed, "of the inputs (default: bench.yaml, or 1337)");
  syntax.add("--threads", threads, "that a kernel may use on the CPU (default: all cores)");
  syntax.add("--device", device, "which of a backend's devices");
  syntax.add("--no-roofline", leaves_roofline, "do not measure what the devices can do at best");
  syntax.add("--output-dir DIR", output_dir, "where reports go; an earlier report there is replaced");
  syntax.add("--compare-to REF|FILE", compare_to, "a summary.json, or a git ref that has one in --output-dir");
  syntax.add("--latency-threshold", latency_threshold, "a slowdown up to this does not matter");
  syntax.add("--accuracy-threshold", accuracy_threshold, "an error may grow by this much");
  syntax.add("--strict", is_strict, "exit 4 where a comparison is too uncertain to say");
  syntax.add("--list", is_list, "show what would run; measure and write nothing");
  syntax.add("--verbose,-v", is_verbose, "tell each case as it comes");
  document_output.add_to(syntax);
  ci.add_to(syntax);
  exports.add_to(syntax);
  syntax.add("--child", child, "").hidden();
  syntax.footer(
      "Exit code: 0 fine, 1 a kernel failed, crashed, timed out or was inaccurate, 2 bad input,\n"
      "3 slower or less accurate than the baseline, 4 (--strict) too uncertain to say, 130 interrupted.");
}

bench::BenchOptions BenchFlags::options() const {
  bench::BenchOptions options;
  for (const std::string& typed : paths) {
    std::error_code ignored;
    const std::string path = package_folder(typed);
    if (!std::filesystem::is_directory(path, ignored))
      reject(fmt::format("--path {}: is no folder", path), "Name a package, or a folder that holds packages.");
    options.paths.emplace_back(path);
  }
  options.precisions =
      words_of<Precision>("--precision", precision, "precision", package::parse_precision, package::kPrecisions);
  options.backends =
      words_of<package::Backend>("--backends", backends, "backend", package::parse_backend, package::kBackends);
  if (!filter.empty()) options.filters = parse_names("--filter", filter);
  if (!iterations.empty()) options.iterations = one_count("--iters", iterations, 1, 1'000'000);
  if (!warmup.empty()) options.warmup = one_count("--warmup", warmup, 0, 1'000'000);
  if (!rounds.empty()) options.rounds = one_count("--rounds", rounds, 1, 100);
  if (!seed.empty()) options.seed = seed_of(seed);
  if (!time_limit.empty()) options.time_limit_s = seconds_of("--time-limit", time_limit);
  options.budget_s = seconds_of("--budget", budget);
  options.stop = static_cast<bench::Stop>(std::find(std::begin(bench::kStops), std::end(bench::kStops), stop) -
                                          std::begin(bench::kStops));
  options.threads =
      threads.empty() ? static_cast<int>(usable_cores().size()) : one_count("--threads", threads, 1, 4096);
  options.device = one_count("--device", device, 0, 1023);
  options.is_cold = is_cold;
  options.has_roofline = !leaves_roofline;
  return options;
}

bench::RegressionOptions BenchFlags::regression() const {
  bench::RegressionOptions options;
  options.latency = share_of("--latency-threshold", latency_threshold, 10);
  options.accuracy =
      real_number("--accuracy-threshold", accuracy_threshold, 0, DBL_MAX, "not an error", "For example 1e-3.");
  return options;
}

}  // namespace weir::cli
