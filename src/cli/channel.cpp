// weir channel: compares the channels with each other, their floors and third-party queues, in separate processes;
// saves baselines and compares with them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/channel_flags.h"
#include "cli/channel_processes.h"
#include "cli/children.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/talking_process.h"
#include "lab/channels/channel_baseline.h"
#include "lab/channels/channel_results.h"
#include "lab/channels/loops/benchmark.h"
#include "report/text/documents.h"
#include "report/text/sections.h"

namespace weir::cli {
namespace {

using channel_bench::Benchmark;
using channel_bench::Group;

using channel_bench::Conditions;
using channel_bench::Measurement;

Measurement run_one(const Benchmark& benchmark, const Conditions& conditions) {
  Measurement failed;
  if (!benchmark.unavailable.empty()) {
    failed.failure = benchmark.unavailable;
    return failed;
  }
  try {
    return benchmark.run(conditions);
  } catch (const std::exception& error) {
    failed.failure = error.what();
  }
  return failed;
}

// The child's side: runs the benchmarks that a file names, in its order, and reports each result as a line of JSON:
// {"begins": ID} before each benchmark, {"ends": ID, "measurement": {...}} after it. Rejects a file that is not a
// request.
int run_channel_child(const std::string& file) {
  const Json request = read_json(file);
  if (!request.is_object() || !request.contains("benchmarks") || !request["benchmarks"].is_array() ||
      !request.contains("conditions"))
    reject(fmt::format("--child {}: is no request of weir channel", file));
  const Conditions conditions = conditions_from(request["conditions"], file);
  const ToParent parent;
  std::map<std::string, std::vector<Benchmark>> made;  // by group; only those requested
  for (const Json& wanted : request["benchmarks"]) {
    const std::string id = wanted.is_string() ? wanted.get<std::string>() : "";
    const std::string name = id.substr(0, id.find('/'));
    parent.send({{"begins", id}});  // before its group is created, which may fail as well
    const Benchmark* chosen = nullptr;
    for (const Group& group : channel_bench::groups()) {
      if (group.name != name) continue;
      if (!made.contains(name)) made[name] = group.benchmarks(conditions);
      for (const Benchmark& benchmark : made[name])
        if (benchmark.id() == id) chosen = &benchmark;
    }
    if (chosen == nullptr) reject(fmt::format("--child {}: there is no benchmark '{}'", file, id));
    parent.send({{"ends", id}, {"measurement", to_json(run_one(*chosen, conditions))}});
  }
  return 0;
}

constexpr int kDeals = 200;  // in a calibration

std::string listed_names(const Json& names) {
  return fmt::format("{}", fmt::join(names.get<std::vector<std::string>>(), ", "));
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// What one group offers on this machine.
Json describe_group(const Group& group, const std::vector<Benchmark>& benchmarks) {
  std::vector<std::string> names, contestants;
  Json unavailable = Json::object(), targets = Json::array();
  for (const Benchmark& benchmark : benchmarks) {
    add_once(names, benchmark.name);
    add_once(contestants, benchmark.contestant);
    if (!benchmark.unavailable.empty())
      unavailable[benchmark.unavailable].push_back(benchmark.name + "/" + benchmark.contestant);
    if (benchmark.target && std::find(targets.begin(), targets.end(), benchmark.target->text) == targets.end())
      targets.push_back(benchmark.target->text);
  }
  return {{"group", group.name},
          {"summary", group.summary},
          {"seed", group.seed.empty() ? Json() : Json(group.seed)},
          {"benchmarks", names},
          {"contestants", contestants},
          {"targets", targets},
          {"unavailable", unavailable}};
}

int list(const ChannelFlags& flags, const channel_bench::Conditions& conditions) {
  const std::vector<Benchmark> chosen = choose_benchmarks(channel_bench::groups(), flags.words(), conditions);
  Json all = Json::array();
  for (const Group& group : channel_bench::groups()) {
    std::vector<Benchmark> mine;
    for (const Benchmark& benchmark : chosen)
      if (benchmark.group == group.name) mine.push_back(benchmark);
    if (!mine.empty()) all.push_back(describe_group(group, mine));
  }
  if (flags.is_json) {
    fmt::print("{}", to_text(all));
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
  fmt::print("{}", out);
  return 0;
}

void add_warnings(const ChannelFlags& flags, ChannelReport& report) {
  const auto& conditions = report.run.settings.conditions;
  if (report.capacity_asked != conditions.capacity)
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
bool measure(const ChannelFlags& flags, ChannelReport& report, const std::function<void()>& save) {
  const ChannelSettings& settings = report.run.settings;
  ChannelPlan plan;
  plan.command = {own_binary().string(), "channel", "--child"};
  plan.conditions = settings.conditions;
  plan.processes = settings.processes;
  plan.limit_ns = flags.limit_ns(settings.conditions);
  for (const ChannelResult& result : report.run.results)
    if (result.unavailable.empty()) plan.ids.push_back(result.id());
  if (!flags.is_quiet && !plan.ids.empty())
    fmt::print(stderr, "{} benchmarks in {} processes: about {}\n", plan.ids.size(), plan.processes,
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
  return run_processes(plan, events);
}

void deliver(const ChannelFlags& flags, const Json& document) {
  if (flags.is_json) {
    fmt::print("{}", to_text(document));
  } else if (!flags.is_quiet) {
    fmt::print("{}", flags.format == "markdown" ? report_markdown(channel_report(document))
                                                : report_text(channel_report(document)));
    if (!flags.output.empty()) fmt::print("\nWritten to {}\n", flags.output);
  }
}

int execute_channel(const ChannelFlags& flags) {
  if (!flags.child.empty()) return run_channel_child(flags.child);
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
  if (!flags.baseline.empty()) {
    const std::filesystem::path file = baseline_file(flags.baseline_dir, "--baseline", flags.baseline);
    if (!std::filesystem::exists(file))
      reject(fmt::format("--baseline {}: there is no {}", flags.baseline, file.string()),
             fmt::format("Make it first: weir channel --save-baseline {}.", flags.baseline));
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
  bool has_written = false;
  const auto save = [&] {
    if (flags.output.empty()) return;
    write_file(flags.output, to_text(channel_document(report, context)), flags.is_forced || has_written);
    has_written = true;
  };
  const bool is_complete = measure(flags, report, save);
  if (is_complete) report.run.status = "complete";
  if (baseline) report.comparison = compare_channels(*baseline, flags.baseline, report.run, options);
  if (flags.is_calibration) report.calibration = calibrate_channels(report.run, kDeals, options);
  save();
  const Json document = channel_document(report, context);
  const auto has = [&](const char* status) {
    return std::any_of(document["benchmarks"].begin(), document["benchmarks"].end(),
                       [&](const Json& benchmark) { return benchmark["status"] == status; });
  };
  deliver(flags, document);
  if (!flags.save_baseline.empty() && has("measured")) {
    const std::filesystem::path file = baseline_file(flags.baseline_dir, "--save-baseline", flags.save_baseline);
    const bool stays = !is_complete && !flags.is_forced && std::filesystem::exists(file);  // half a run is no better
    if (!stays) write_file(file, to_text(document), true);
    if (!flags.is_quiet && !flags.is_json)
      fmt::print("\nBaseline '{}' {} {}\n", flags.save_baseline, stays ? "was not replaced:" : "is in", file.string());
  }
  if (!is_complete) return kExitInterrupted;
  if (has("failed")) return 1;
  return report.comparison ? exit_code(*report.comparison, flags.is_strict) : 0;
}

}  // namespace

CliCommand channel() {
  return command("channel", "measure host channels against each other, floors and other queues", execute_channel);
}

}  // namespace weir::cli
