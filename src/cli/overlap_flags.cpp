#include "cli/overlap_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/ranks.h"
#include "cli/ready_files.h"
#include "step/workload/workload.h"

namespace weir::cli {
namespace {

constexpr std::uintmax_t kLargestConfig = 1 << 20;

std::string config_text(const std::string& path) {
  try {
    return read_file(path, kLargestConfig);
  } catch (Error& error) {
    error.hint = "Name a YAML file: config/default.yaml, or one of your own (docs/overlap.md).";
    throw;
  }
}

// What the number of ranks must divide; 0: any number does.
std::int64_t shared_batch(const OverlapConfig& config) {
  if (config.has_batch_per_rank()) return 0;
  std::int64_t batch = config.integer("training.batch");
  if (batch == 0) {  // as the workload has it, on a GPU
    const std::string scale = config.value("run.scale");
    batch = Params(workload_named(kOverlapWorkload).params, scale.empty() ? Scale::full : scale_named(scale), {})
                .integer("batch");
  }
  for (const auto& [key, values] : config.sweeps)
    if (key == "training.batch") {
      batch = 0;
      for (const std::string& value : values) batch = std::gcd(batch, parse_integer(value).value_or(0));
    }
  return batch;
}

}  // namespace

void OverlapFlags::add_to(CommandSyntax syntax) {
  syntax.add("config PATH", file, "YAML file: config/default.yaml, ... or a config of AORTA's");
  syntax.add("--set NAME=VALUE", assignments, "key=value, repeatable: fsdp.prefetch=2; --list shows them");
  syntax.add("--ranks N", ranks,
             "start this many processes under mpirun (default: as the launcher did, else one per GPU)");
  syntax.add("--device NAME", device, "the same as --set run.device=...");
  syntax.add("--hang-timeout DURATION", hang_timeout,
             "end a run without any progress for this long (default: as the config says)");
  variables.add_to(syntax);
  syntax.add("--no-env", skips_variables, "leave out the config's env: keep the variables as they are");
}

OverlapConfig OverlapFlags::load() const {
  if (file.empty()) reject("a config is required", "For example: weir overlap config/default.yaml --ranks 4");
  const int expected = rank_count(ranks);
  const OverlapConfig config = read(expected);
  if (expected > 1) return config;
  // AORTA's batch size depends on the ranks, and these on the config.
  const int count = ranks_of(config);
  return count > 1 ? read(count) : config;
}

OverlapConfig OverlapFlags::read(int expected) const {
  const std::string path = config_file(file);
  OverlapConfig config = parse_overlap_config(config_text(path), path, expected);
  for (const std::string& assignment : assignments) config.assign(assignment, "--set");
  if (skips_variables && !variables.texts.empty())
    reject("--no-env: there are variables to set (--env)", "Leave one of them out.");
  if (skips_variables) config.variables.clear();
  if (!config.variables.empty() && job_ranks().count > 1)
    reject(fmt::format("{}: env: this job's ranks were started once, with their variables", path),
           "Set them before the launcher and add --no-env, or start weir with --ranks and without a launcher.");
  replace_variables(config.variables, variables.axes());
  if (!device.empty()) config.set("run.device", device, "--device");
  if (!hang_timeout.empty())
    config.set("run.hang_timeout", fmt::format("{}", seconds_of("--hang-timeout", hang_timeout)), "--hang-timeout");
  return config;
}

std::vector<std::string> OverlapFlags::words(const std::vector<std::string>& more, int count) const {
  std::vector<std::string> words = {"overlap", file};
  for (const std::vector<std::string>& each : {assignments, more})
    for (const std::string& assignment : each) words.insert(words.end(), {"--set", assignment});
  if (!device.empty()) words.insert(words.end(), {"--device", device});
  if (!hang_timeout.empty()) words.insert(words.end(), {"--hang-timeout", hang_timeout});
  words.insert(words.end(), {"--ranks", std::to_string(count)});  // also 1: not one per GPU
  words.emplace_back("--no-env");
  return words;
}

int OverlapFlags::ranks_of(const OverlapConfig& config) const {
  const auto wanted = static_cast<int>(config.integer("run.ranks"));
  if (wanted == 0) return default_rank_count(ranks, config.value("run.device"), shared_batch(config));
  const int given = ranks.empty() ? job_ranks().count : rank_count(ranks);
  if (given == 1 && ranks.empty() && job_ranks().count == 1) return wanted;
  if (given != wanted)
    reject(fmt::format("run.ranks {}: {} {} {}", wanted, ranks.empty() ? "this job has" : "--ranks says", given,
                       given == 1 ? "process" : "processes"),
           fmt::format("Start as many (mpirun -n {}), or leave run.ranks out (--set run.ranks=0).", wanted));
  return wanted;
}

}  // namespace weir::cli
