// weir channel: compares the channels with each other, their floors and third-party queues, in separate processes;
// saves baselines and compares with them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/ci_flags.h"
#include "cli/command.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "device/list.h"
#include "lab/channels/channel_baseline.h"
#include "lab/channels/channel_processes.h"
#include "lab/channels/channel_results.h"
#include "lab/channels/channel_selection.h"
#include "lab/channels/loops/benchmark.h"
#include "measure/environment.h"
#include "report/figures/judgement.h"
#include "report/text/documents.h"
#include "report/text/sections.h"
#include "report/text/svg.h"
#include "run/children.h"
#include "run/host_profile.h"

namespace weir::cli {
namespace {

using channel_bench::Benchmark;
using channel_bench::Group;

constexpr int kProcesses = 5;          // needed for a table of values
constexpr int kCompareProcesses = 10;  // needed for a verdict: with fewer, nothing is significant among many benchmarks
constexpr int kCalibrationProcesses = 8;  // on each side
constexpr int kQuickProcesses = 2;
constexpr std::size_t kDocumentCapacity = 100;
constexpr int kSamples = 10, kQuickSamples = 5;
constexpr double kSampleMs = 5, kQuickSampleMs = 1;

void check_device(const std::string& name) {
  std::vector<std::string> known = {"auto"};
  for (const DeviceType& type : device_types()) known.emplace_back(type.name);
  const std::string type = name.substr(0, name.find(':'));
  if (std::find(known.begin(), known.end(), type) == known.end())
    reject(fmt::format("--device {}: there is no such device", name), device_suggestion(type));
}

// As typed. Numbers are kept as text, so that messages can show the flag and the word.
struct ChannelCommandFlags {
  std::vector<std::string> wanted;
  std::string skip, host_profile;
  CiFlags ci;
  std::string channels;
  std::string save_baseline, baseline, baseline_dir = ".weir/channel";
  std::string processes, samples, cores = "auto", capacity, device = "cpu", seed = "1", limit = "20s";
  std::string threshold = "10%";
  std::string output, format = "text";
  std::string child;  // set in a child of Weir: the file with its request
  bool is_only = false, is_list = false, is_quick = false, is_calibration = false;
  bool is_json = false, is_quiet = false, is_strict = false, is_forced = false;

  void add_to(CommandSyntax syntax);
  // Rejects bad values, naming the flag.
  ChannelWords words() const;
  ChannelSettings settings() const;
  std::size_t capacity_asked() const;
  // Nanoseconds that a benchmark may take: the value of --limit, or more where its samples alone take long.
  std::int64_t limit_ns(const channel_bench::Conditions& conditions) const;
  // Rejects contradictory flags and files that could not be written.
  void check() const;
};

void ChannelCommandFlags::add_to(CommandSyntax syntax) {
  syntax.add("groups GROUP", wanted,
             "groups of benchmarks, or single ones: send_latency/small, send_latency/small/spsc (default: all; --list "
             "shows them)");
  syntax.add("--skip GROUP", skip, "groups or single benchmarks to leave out, with commas");
  syntax.add("--list", is_list, "show groups, contestants, and what cannot be run here");
  syntax.add("--channel NAME", channels, "contestants, with commas; floors and competitors stay beside them");
  syntax.add("--only", is_only, "with --channel or single benchmarks: nothing beside them");
  syntax.add("--save-baseline NAME", save_baseline, "keep the result under this name");
  syntax.add("--baseline NAME", baseline, "compare with the result of this name");
  syntax.add("--baseline-dir PATH", baseline_dir, "where baselines are");
  syntax.add("--calibrate", is_calibration,
             "compare this program with itself: how many false alarms do the rules raise?");
  syntax.add("--threshold PERCENT", threshold, "smallest change that matters");
  syntax.add("--processes N", processes,
             "processes of each benchmark (default 5; quick 2; baselines 10; calibrate 2 x 8)");
  syntax.add("--samples N", samples, "samples of each process (default 10; quick: 5)");
  syntax.add("--quick", is_quick, "a first look: fewer and shorter samples");
  syntax.add("--cores LIST", cores, "cores that threads are bound to: auto, none, or 0,1");
  syntax.add("--capacity N", capacity,
             "commands that a channel holds, rounded up to a power of two (default 100, "
             "as the requirements ask; programs that submit many use 1024)");
  syntax.add("--device NAME", device, "of the groups that run kernels");
  syntax.add("--seed N", seed, "of the orders of benchmarks");
  syntax.add("--limit DURATION", limit, "a benchmark that takes longer is ended by force");
  syntax.add("--json", is_json, "print the document (weir.channel/2) instead of text");
  syntax.add("--output,-o PATH", output, "write the document to this file (-: standard output)");
  syntax.add("--format NAME", format, "output format").one_of({"text", "markdown"});
  syntax.add("--host-profile PATH", host_profile,
             "run everything once more under perf: write where it spent its time to this file, as folded stacks or, "
             "if the name ends in .svg, as a flame graph");
  ci.add_to(syntax);
  syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  syntax.add("--strict", is_strict, "exit 4 if a change is too uncertain to judge");
  syntax.add("--force,-f", is_forced, "replace existing files and baselines");
  syntax.add("--child", child, "").hidden();
  syntax.footer(
      "Exit code: 0 nothing slower, 1 a benchmark failed, 2 bad input, 3 slower than the baseline,\n"
      "4 (--strict) too uncertain to say, 130 interrupted.");
}

ChannelWords ChannelCommandFlags::words() const {
  ChannelWords words;
  words.wanted = wanted;
  if (!skip.empty()) words.skipped = parse_names("--skip", skip);
  if (!channels.empty()) words.contestants = parse_names("--channel", channels);
  words.is_only = is_only;
  const bool has_single =
      std::any_of(wanted.begin(), wanted.end(), [](const std::string& word) { return word.find('/') != word.npos; });
  if (is_only && channels.empty() && !has_single)
    reject("--only: no channel is named", "Use it with --channel NAME, or with GROUP/NAME/CHANNEL.");
  return words;
}

std::size_t ChannelCommandFlags::capacity_asked() const {
  if (capacity.empty()) return kDocumentCapacity;
  if (parse_integer(capacity) == 0)
    reject("--capacity 0: a channel that holds nothing carries nothing", "Use 1 or more.");
  return static_cast<std::size_t>(whole_number("--capacity", capacity, 1, 1 << 20, "not a number of commands"));
}

ChannelSettings ChannelCommandFlags::settings() const {
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

std::int64_t ChannelCommandFlags::limit_ns(const channel_bench::Conditions& conditions) const {
  const double seconds = static_cast<double>(duration_of("--limit", limit, 100'000'000, 3'600'000'000'000)) / 1e9;
  // Samples that take twenty times as long as they should still count as progress.
  const double samples_s = conditions.samples * conditions.sample_ms * 1e-3;
  return static_cast<std::int64_t>(std::max(seconds, 20 * samples_s) * 1e9);
}

void ChannelCommandFlags::check() const {
  if (is_calibration && !baseline.empty())
    reject("--calibrate compares this program with itself", "Leave out --baseline, or compare in a second run.");
  if (!save_baseline.empty() && save_baseline == baseline)
    reject(fmt::format("--save-baseline {} and --baseline {}: the same", save_baseline, baseline),
           "Compare first; save once you like what you see.");
  if (!output.empty()) check_writable(output, is_forced);
  if (!host_profile.empty()) check_writable(host_profile, is_forced);
  ci.check(is_forced, is_json);
  if (save_baseline.empty()) return;
  const std::filesystem::path file = baseline_file(baseline_dir, "--save-baseline", save_baseline);
  std::error_code status;
  std::filesystem::create_directories(baseline_dir, status);
  if (status) reject(fmt::format("--baseline-dir {}: cannot be created: {}", baseline_dir, status.message()));
  // A baseline is identified by its name: a newer one replaces it, but never a file that is not a baseline.
  if (!is_forced && std::filesystem::exists(file, status)) load_channel_run(file);  // rejects
  check_writable(file, true);
}

constexpr int kDeals = 200;  // in a calibration

std::string listed_names(const Json& names) {
  return fmt::format("{}", fmt::join(names.get<std::vector<std::string>>(), ", "));
}

int list(const ChannelCommandFlags& flags, const channel_bench::Conditions& conditions) {
  const Json all = describe_groups(choose_benchmarks(channel_bench::groups(), flags.words(), conditions));
  if (flags.is_json) {
    write_json(to_text(all));
    return 0;
  }
  std::string out;
  for (const Json& group : all) {
    out += fmt::format("{}{}\n    {}\n", out.empty() ? "" : "\n", group["group"].get<std::string>(),
                       wrapped(group["summary"].get<std::string>(), 4));
    const auto line = [&](const char* label, const std::string& value) {
      if (!value.empty()) out += fmt::format("    {:<14}{}\n", label, wrapped(value, 18));
    };
    line("answers", group["seed"].is_null() ? "" : group["seed"].get<std::string>());
    line("benchmarks", listed_names(group["benchmarks"]));
    line("contestants", listed_names(group["contestants"]));
    line("targets", listed_names(group["targets"]));
    for (const auto& [reason, places] : group["unavailable"].items())
      line("not here", fmt::format("{} ({})", listed_names(places), reason));
  }
  write_out(out);
  return 0;
}

void add_warnings(const ChannelCommandFlags& flags, ChannelReport& report) {
  const auto& conditions = report.run.settings.conditions;
  if (!flags.capacity.empty() && report.capacity_asked != conditions.capacity)
    report.warnings.push_back(
        {"capacity_rounded",
         fmt::format("--capacity {} was rounded up to {}.", report.capacity_asked, conditions.capacity),
         "Rings hold a power of two."});
  const auto load = report.run.environment.find("load_average");
  if (load != report.run.environment.end() && load->is_string()) {
    const double busy = std::strtod(load->string().c_str(), nullptr);
    if (busy > 0.5)
      report.warnings.push_back({"busy_machine", fmt::format("The load was {:.1f} before this run began.", busy),
                                 "Others take cores from what is measured; wait until they are done."});
  }
  if (!flags.save_baseline.empty() && report.run.settings.processes < 8)
    report.warnings.push_back(
        {"few_processes", fmt::format("A baseline of {} processes can prove little.", report.run.settings.processes),
         "Use 8 or more."});
}

// Approximate seconds that a run will take: samples, the work around them, and starting threads.
double estimate_s(const ChannelSettings& settings, std::size_t benchmarks) {
  const double one = settings.conditions.samples * settings.conditions.sample_ms * 1.5e-3 + 0.02;
  return settings.processes * (0.05 + static_cast<double>(benchmarks) * one);
}

// Runs everything into the report; returns false where it was interrupted. `save` is called whenever a process has
// ended.
bool measure(const ChannelCommandFlags& flags, ChannelReport& report, const std::function<void()>& save) {
  const ChannelSettings& settings = report.run.settings;
  ChannelPlan plan;
  plan.command = {own_binary().string(), "channel", "--child"};
  plan.conditions = settings.conditions;
  plan.processes = settings.processes;
  plan.limit_ns = flags.limit_ns(settings.conditions);
  for (const ChannelResult& result : report.run.results)
    if (result.unavailable.empty()) plan.ids.push_back(result.id());
  if (!flags.is_quiet && !plan.ids.empty())
    print_err("{} benchmarks in {} processes: about {}\n", plan.ids.size(), plan.processes,
              format_duration(estimate_s(settings, plan.ids.size()) * 1e9));
  ProgressLine progress(flags.is_quiet);
  const std::int64_t begun_ns = now_ns();
  ChannelEvents events;
  events.began = [&](int process, const std::string& id, std::size_t done, std::size_t total) {
    const double left = done < 10 ? NAN
                                  : static_cast<double>(now_ns() - begun_ns) * static_cast<double>(total - done) /
                                        static_cast<double>(done);
    progress.show(
        fmt::format("process {}/{}{} {}", process + 1, plan.processes,
                    std::isnan(left) ? "" : fmt::format(", {} left,", format_duration(left)), id.substr(0, 36)),
        static_cast<int>(done), static_cast<int>(total));
  };
  events.measured = [&](int process, const std::string& id, channel_bench::Measurement found) {
    for (ChannelResult& result : report.run.results)
      if (result.id() == id) result.measurements.push_back({process, std::move(found)});
  };
  events.ended = [&](const ChannelProcess& process) {
    report.processes.push_back(process);
    save();
  };
  return run_processes(plan, events, catch_interrupts());
}

// Runs the benchmarks once more in this process, and writes perf's view of them. Those that failed are left out.
void add_host_profile(const ChannelCommandFlags& flags, const std::vector<Benchmark>& chosen, ChannelReport& report) {
  constexpr std::int64_t kWantedNs = 2'000'000'000;  // about 2,000 samples of a thread that is always busy
  const auto& conditions = report.run.settings.conditions;
  HostProfile profile = profile_host(
      [&] {
        const std::int64_t until_ns = now_ns() + kWantedNs;
        do {
          for (std::size_t i = 0; i < chosen.size() && first_interrupt() == 0; ++i) {
            const auto& measured = report.run.results[i].measurements;
            if (!measured.empty() && measured.front().found.failure.empty()) chosen[i].run(conditions);
          }
        } while (now_ns() < until_ns && first_interrupt() == 0);
      },
      flags.host_profile);
  if (!profile.stacks.empty()) {
    const std::string title =
        fmt::format("weir channel, {} benchmarks: the host at {} Hz", chosen.size(), kHostProfileHz);
    write_file(flags.host_profile,
               flags.host_profile.ends_with(".svg") ? flame_svg(profile.stacks, title) : folded_text(profile.stacks),
               flags.is_forced);
  } else {
    report.warnings.push_back({"no_host_profile", fmt::format("There is no host profile: {}.", profile.reason),
                               "The result is as good without it. docs/profile.md says what perf needs."});
  }
  report.host_profile = std::move(profile.facts);
}

void deliver(const ChannelCommandFlags& flags, const Json& document) {
  if (flags.is_json) {
    write_json(to_text(document));
  } else if (!flags.is_quiet) {
    print_out("{}", flags.format == "markdown" ? report_markdown(channel_report(document))
                                               : report_text(channel_report(document)));
    if (!flags.output.empty()) print_out("\nWritten to {}\n", flags.output);
    if (document["host_profile"].is_object())
      print_out("\nHost profile of {} samples written to {}\n", document["host_profile"]["samples"].dump(),
                flags.host_profile);
  }
}

int execute_channel(ChannelCommandFlags flags) {
  if (flags.output == "-") {
    flags.is_json = true;
    flags.output.clear();
  }
  if (!flags.child.empty()) {
    run_channel_child(flags.child);
    return 0;
  }
  ChannelReport report;
  report.run.settings = flags.settings();
  report.capacity_asked = flags.capacity_asked();
  if (flags.is_list) return list(flags, report.run.settings.conditions);
  const std::vector<Benchmark> chosen =
      choose_benchmarks(channel_bench::groups(), flags.words(), report.run.settings.conditions);
  for (const Benchmark& benchmark : chosen) report.run.results.push_back(result_for(benchmark));
  for (const Group& group : channel_bench::groups())
    if (std::any_of(chosen.begin(), chosen.end(), [&](const Benchmark& one) { return one.group == group.name; }))
      report.groups.push_back({group.name, group.summary, group.seed});
  CompareOptions options;
  options.threshold = share_of("--threshold", flags.threshold);
  options.bootstrap.seed = report.run.settings.conditions.seed;
  flags.limit_ns(report.run.settings.conditions);  // rejects
  std::optional<ChannelRun> baseline;
  std::error_code ignored;
  if (!flags.baseline.empty()) {
    const std::filesystem::path file = baseline_file(flags.baseline_dir, "--baseline", flags.baseline);
    if (!std::filesystem::exists(file, ignored))
      reject(fmt::format("--baseline {}: {} does not exist", flags.baseline, file.string()),
             std::filesystem::exists(flags.baseline, ignored)
                 ? "It takes a name that --save-baseline gave. Files are compared by weir compare BASELINE TEST."
                 : fmt::format("Make it first: weir channel --save-baseline {}.", flags.baseline));
    baseline = load_channel_run(file);
    compare_channels(*baseline, flags.baseline, report.run,
                     options);  // rejects runs with nothing in common, before hours of work
  }
  flags.check();

  const RunContext context = run_context();
  report.run.environment = context.environment;
  report.run.created = wall_time();
  report.run.status = "interrupted";  // until the run completes
  add_warnings(flags, report);
  std::optional<SavedFile> file;
  if (!flags.output.empty()) file.emplace(flags.output, flags.is_forced);
  const auto save = [&] {
    if (file) file->save(to_text(channel_document(report, context)));
  };
  const bool is_complete = measure(flags, report, save);
  if (is_complete) report.run.status = "complete";
  if (baseline) report.comparison = compare_channels(*baseline, flags.baseline, report.run, options);
  if (flags.is_calibration) report.calibration = calibrate_channels(report.run, kDeals, options);
  if (is_complete && !flags.host_profile.empty()) add_host_profile(flags, chosen, report);
  save();
  const Json document = channel_document(report, context);
  const auto has = [&](const char* status) {
    return std::any_of(document["benchmarks"].begin(), document["benchmarks"].end(),
                       [&](const Json& benchmark) { return benchmark["status"] == status; });
  };
  deliver(flags, document);
  if (!flags.save_baseline.empty() && has("measured")) {
    const std::filesystem::path file = baseline_file(flags.baseline_dir, "--save-baseline", flags.save_baseline);
    const bool stays =
        !is_complete && !flags.is_forced && std::filesystem::exists(file, ignored);  // half a run is no better
    if (!stays) write_file(file, to_text(document), true);
    if (!flags.is_quiet && !flags.is_json)
      print_out("\nBaseline '{}' {} {}\n", flags.save_baseline, stays ? "was not replaced:" : "is in", file.string());
  }
  if (!is_complete) return kExitInterrupted;
  const int code = has("failed") ? 1 : report.comparison ? exit_code(*report.comparison, flags.is_strict) : 0;
  flags.ci.report(
      judge_channel(document, "weir channel", flags.is_strict, code),
      [&](std::size_t most) { return github_excerpt(report_markdown(channel_report(document)), most); },
      flags.is_forced);
  return code;
}

}  // namespace

CliCommand channel() {
  return command("channel", "measure host channels against each other, floors and other queues", execute_channel);
}

}  // namespace weir::cli
