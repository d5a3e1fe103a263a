#include "lab/kernels/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"
#include "base/options.h"

namespace weir::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kIterations = 30, kWarmup = 3, kRounds = 5;
constexpr int kFewForRounds = 15;  // with fewer samples, one process takes them all
constexpr std::uint64_t kSeed = 1337;
constexpr double kTimeLimitS = 120;

template <class Word>
Json names_json(const std::vector<Word>& words) {
  if (words.empty()) return nullptr;
  Json names = Json::array();
  for (const Word word : words) names.push_back(name_of(word));
  return names;
}

// A word of --filter matches part of a name; with * ? or [ it is a pattern for the whole name.
bool filter_takes(const std::string& word, const std::string& name) {
  if (word.find_first_of("*?[") == std::string::npos) return name.find(word) != std::string::npos;
  return ::fnmatch(word.c_str(), name.c_str(), 0) == 0;
}

// A filter that matches nothing is a mistake, even if others match.
void check_filters(const BenchOptions& options, const package::Discovery& found) {
  std::vector<std::string> names;
  for (const package::Package& package : found.packages) names.push_back(package.name);
  for (const std::string& word : options.filters)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return filter_takes(word, name); }))
      reject(fmt::format("--filter {}: matches none of {} packages", word, names.size()), suggestion(word, names));
}

}  // namespace

int BenchOptions::iterations_of(const package::Package& package) const {
  return iterations ? *iterations : package.config.iterations.value_or(kIterations);
}
int BenchOptions::warmup_of(const package::Package& package) const {
  return warmup ? *warmup : package.config.warmup.value_or(kWarmup);
}
std::uint64_t BenchOptions::seed_of(const package::Package& package) const {
  return seed ? *seed : package.config.seed.value_or(kSeed);
}
double BenchOptions::time_limit_of(const package::Package& package) const {
  return time_limit_s ? *time_limit_s : package.config.time_limit_s.value_or(kTimeLimitS);
}

int BenchOptions::rounds_of(const package::Package& package) const {
  const int samples = iterations_of(package);
  if (!rounds && samples < kFewForRounds) return 1;
  return std::clamp(samples / kMinPerRound, 1, rounds.value_or(kRounds));
}

int BenchOptions::iterations_of(const package::Package& package, int round) const {
  const int samples = iterations_of(package), all = rounds_of(package);
  return samples / all + (round < samples % all ? 1 : 0);
}

bool BenchOptions::takes(const package::Package& package) const {
  return filters.empty() || std::any_of(filters.begin(), filters.end(),
                                        [&](const std::string& word) { return filter_takes(word, package.name); });
}

Json BenchOptions::to_json() const {
  Json folders = Json::array();
  for (const std::filesystem::path& path : paths) folders.push_back(path.string());
  return {{"paths", folders},
          {"iterations", or_null(iterations)},
          {"warmup", or_null(warmup)},
          {"rounds", or_null(rounds)},
          {"precisions", names_json(precisions)},
          {"backends", names_json(backends)},
          {"filters", filters},
          {"seed", or_null(seed)},
          {"stop", kStops[static_cast<int>(stop)]},
          {"budget_s", budget_s},
          {"time_limit_s", or_null(time_limit_s)},
          {"threads", threads},
          {"device", device},
          {"is_cold", is_cold},
          {"has_roofline", has_roofline}};
}

package::Discovery find_packages(const BenchOptions& options) {
  std::vector<fs::path> roots = options.paths;
  if (roots.empty())
    for (const char* usual : package::kUsualFolders) {
      std::error_code ignored;
      if (fs::is_directory(usual, ignored)) roots.emplace_back(usual);
    }
  const std::string where = options.paths.empty()
                                ? fmt::format("{} below this folder", fmt::join(package::kUsualFolders, ", "))
                                : "--path " + options.paths.front().string();
  package::Discovery found = package::discover(roots);
  if (found.packages.empty())
    reject(fmt::format("no kernel package was found in {}", where),
           "A package is a folder with kernel.cpp, kernel.cu or kernel.cl in it, or a Python module with "
           "run_benchmark(); name one with --path PATH (kernels: those of weir). "
           "docs/bench.md shows one step by step.");
  check_filters(options, found);
  return found;
}

}  // namespace weir::bench
