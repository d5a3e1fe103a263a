#include "cli/channel_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/flag_values.h"
#include "device/device.h"
#include "lab/channels/channel_baseline.h"
#include "measure/environment.h"

namespace weir::cli {
namespace {

constexpr int kProcesses = 5;          // needed for a table of values
constexpr int kCompareProcesses = 10;  // needed for a verdict: with fewer, nothing is significant among many benchmarks
constexpr int kCalibrationProcesses = 8;  // on each side
constexpr int kQuickProcesses = 2;
constexpr int kSamples = 10, kQuickSamples = 5;
constexpr double kSampleMs = 5, kQuickSampleMs = 1;

void check_device(const std::string& name) {
  std::vector<std::string> known = {"auto"};
  for (const DeviceType& type : device_types()) known.emplace_back(type.name);
  const std::string type = name.substr(0, name.find(':'));
  if (std::find(known.begin(), known.end(), type) == known.end())
    reject(fmt::format("--device {}: there is no such device", name), suggestion(type, known));
}

}  // namespace

void ChannelFlags::add_to(CommandSyntax syntax) {
  syntax.add("groups GROUP", groups, "groups of benchmarks (default: all; --list shows them)");
  syntax.add("--list", is_list, "show groups, contestants, and what cannot be run here");
  syntax.add("--channel", channels, "contestants, with commas; floors and competitors stay beside them");
  syntax.add("--only", is_only, "with --channel: nothing beside them");
  syntax.add("--save-baseline NAME", save_baseline, "keep the result under this name");
  syntax.add("--baseline NAME", baseline, "compare with the result of this name");
  syntax.add("--baseline-dir", baseline_dir, "where baselines are");
  syntax.add("--calibrate", is_calibration, "compare this program with itself: how often do rules cry wolf?");
  syntax.add("--threshold", threshold, "smallest change that matters");
  syntax.add("--processes", processes,
             "processes of each benchmark (default 5; quick 2; baselines 10; calibrate 2 x 8)");
  syntax.add("--samples", samples, "samples of each process (default 10; quick: 5)");
  syntax.add("--quick", is_quick, "a first look: fewer and shorter samples");
  syntax.add("--cores", cores, "cores that threads are bound to: auto, none, or 0,1");
  syntax.add("--capacity", capacity, "commands that a channel holds; rounded up to a power of two");
  syntax.add("--device", device, "of the groups that run kernels");
  syntax.add("--seed", seed, "of the orders of benchmarks");
  syntax.add("--limit", limit, "seconds after which a benchmark that does not end is ended");
  syntax.add("--json", is_json, "print the document (weir.channel/1) instead of text");
  syntax.add("--output,-o", output, "write the document to this file");
  syntax.add("--format", format, "how to tell it").one_of({"text", "markdown"});
  syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  syntax.add("--strict", is_strict, "exit 4 if a change is too uncertain to judge");
  syntax.add("--force", is_forced, "replace existing files and baselines");
  syntax.add("--child", child, "").hidden();
  syntax.footer(
      "Exit code: 0 nothing slower, 1 a benchmark failed, 2 bad input, 3 slower than the baseline,\n"
      "4 (--strict) too uncertain to say, 130 interrupted.");
}

ChannelWords ChannelFlags::words() const {
  ChannelWords words;
  words.groups = groups;
  if (!channels.empty()) words.contestants = parse_names("--channel", channels);
  words.is_only = is_only;
  if (is_only && channels.empty()) reject("--only: there is nothing to keep", "Use it with --channel NAME.");
  return words;
}

std::size_t ChannelFlags::capacity_asked() const {
  if (parse_integer(capacity) == 0)
    reject("--capacity 0: a channel that holds nothing carries nothing", "Use 1 or more.");
  return static_cast<std::size_t>(whole_number("--capacity", capacity, 1, 1 << 20, "not a number of commands"));
}

ChannelSettings ChannelFlags::settings() const {
  ChannelSettings settings;
  auto& conditions = settings.conditions;
  conditions.cores = cores_named(cores, usable_cores());
  conditions.samples =
      samples.empty() ? (is_quick ? kQuickSamples : kSamples) : one_count("--samples", samples, 1, 10'000);
  conditions.sample_ms = is_quick ? kQuickSampleMs : kSampleMs;
  conditions.capacity = std::bit_ceil(capacity_asked());
  check_device(device);
  conditions.device = device;
  conditions.seed = seed_of(seed);
  settings.placement = cores;
  const bool compares = !baseline.empty() || !save_baseline.empty();
  settings.processes = !processes.empty() ? one_count("--processes", processes, 1, 500)
                       : is_calibration   ? kCalibrationProcesses
                       : is_quick         ? kQuickProcesses
                       : compares         ? kCompareProcesses
                                          : kProcesses;
  if (is_calibration) settings.processes = std::max(4, 2 * settings.processes);
  return settings;
}

std::int64_t ChannelFlags::limit_ns(const channel_bench::Conditions& conditions) const {
  const double seconds = real_number("--limit", limit, 0.1, 3600, "not a number of seconds");
  // Samples that take twenty times as long as they should still count as progress.
  const double samples_s = conditions.samples * conditions.sample_ms * 1e-3;
  return static_cast<std::int64_t>(std::max(seconds, 20 * samples_s) * 1e9);
}

void ChannelFlags::check() const {
  if (is_calibration && !baseline.empty())
    reject("--calibrate compares this program with itself", "Leave out --baseline, or compare in a second run.");
  if (!save_baseline.empty() && save_baseline == baseline)
    reject(fmt::format("--save-baseline {} and --baseline {}: the same", save_baseline, baseline),
           "Compare first; save once you like what you see.");
  if (!output.empty()) check_writable(output, is_forced);
  if (save_baseline.empty()) return;
  const std::filesystem::path file = baseline_file(baseline_dir, "--save-baseline", save_baseline);
  std::error_code status;
  std::filesystem::create_directories(baseline_dir, status);
  if (status) reject(fmt::format("--baseline-dir {}: cannot be made: {}", baseline_dir, status.message()));
  // A baseline is identified by its name: a newer one replaces it, but never a file that is not a baseline.
  if (!is_forced && std::filesystem::exists(file, status)) load_channel_run(file);  // rejects
  check_writable(file, true);
}

}  // namespace weir::cli
