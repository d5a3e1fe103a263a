// weir queues sweep: one workload over queue counts, stream counts and sizes. Drivers read the queue count once, so
// each point is a separate process (`weir run`), which reports the count that it saw.
#include "lab/queues/queues_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/default_output.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "cli/sweep_output.h"
#include "report/text/documents.h"
#include "run/children.h"
#include "submit/submitter.h"

namespace weir::cli {
namespace {

struct QueuesSweepFlags {
  WorkloadFlags workload;
  std::string device = "auto", queues = "1,2,4,8,16,32", streams, scales, precision;
  std::string submit = "inline", placement = "natural", compute_units;
  std::string iterations = "100", warmup = "10", seed = "1", repeats = "3", limit = "10m";
  std::vector<std::string> params, sim;
  DocumentFile document;
  bool skips_check = false, resumes = false, is_quiet = false, is_forced = false;

  std::int64_t limit_ns() const { return static_cast<std::int64_t>(seconds_of("--time-limit", limit) * 1e9); }
  void add_to(CommandSyntax syntax) {
    workload.add_to(syntax);
    syntax.add("--hw-queues N", queues, "queue counts: 1,2,4,8 or 1..32:x2");
    syntax.add("--streams N", streams, "stream counts (default: the workload's recommended)");
    syntax.add("--scale NAME", scales, "one or several: tiny,small,full (default: full on a GPU, small elsewhere)");
    syntax.add("--param NAME=VALUE", params, "name=value or name=v1,v2,v3, repeatable; `weir list -v` shows the names");
    syntax.add("--device NAME", device, "auto, cpu, cuda:0, hip:0, opencl:0, sim:h200 (auto: the first GPU, else cpu)");
    syntax.add("--sim NAME=VALUE", sim, "name=value, repeatable: a setting of the simulated device (docs/sim.md)");
    syntax.add("--compute-units N", compute_units,
               "compute units that each stream is confined to (AMD and NVIDIA GPUs)");
    syntax.add("--iterations N", iterations, "measured iterations of each point");
    syntax.add("--processes N", repeats, "processes for each point");
    syntax.add("--warmup N", warmup, "iterations before measuring");
    syntax.add("--precision NAME", precision, "fp32, tf32, fp16, bf16, fp8_e4m3 or fp8_e5m2 (default: the workload's)");
    syntax.add("--submit NAME", submit, "inline, threads[:k], graph or channel[:mpsc[:k]]");
    syntax.add("--placement NAME", placement, "natural, serial, round_robin or critical_path");
    syntax.add("--seed N", seed, "seed of all data");
    syntax.add("--time-limit DURATION", limit, "a process that takes longer is ended, and its point counts as failed");
    syntax.add("--no-check", skips_check, "do not compare the output with the CPU reference");
    document.add_to(syntax, "file (default: results/queues-sweep-WORKLOAD-DEVICE.json)");
    syntax.add("--resume", resumes, "skip points already measured");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
    syntax.add("--force,-f", is_forced, "replace existing output files");
  }
};

QueuesSweepRequest request_of(const QueuesSweepFlags& flags, const DeviceInfo& info, const QueueSetting& setting) {
  RunFlags run;
  run.iterations = flags.iterations;
  run.warmup = flags.warmup;
  run.placement = flags.placement;
  run.precision = flags.precision;
  run.seed = flags.seed;
  run.skips_check = flags.skips_check;
  run.skips_trace = true;
  QueuesSweepRequest request;
  request.run = run.request();
  request.run.submit = parse_submit(flags.submit);
  flags.workload.choose(request.run);
  const Workload& workload = workload_of(request.run);
  request.queues = parse_counts("--hw-queues", flags.queues, 1, setting.most);
  request.streams = {workload.streams.recommended};
  if (!flags.streams.empty())
    request.streams = fitting_counts(workload, parse_counts("--streams", flags.streams, 1, kMaxStreams));
  if (request.streams.empty())
    reject(fmt::format("--streams {}: {} runs on {} to {} streams", flags.streams, workload.name, workload.streams.min,
                       workload.streams.max));
  if (flags.scales.empty()) request.scales = {scale_of(request.run, info)};
  for (const std::string& name :
       flags.scales.empty() ? std::vector<std::string>() : parse_names("--scale", flags.scales))
    if (const Scale scale = scale_named(name);
        std::find(request.scales.begin(), request.scales.end(), scale) == request.scales.end())
      request.scales.push_back(scale);
  for (const std::string& param : flags.params) {
    auto [name, values] = parse_assignment("--param", param);
    const auto is_given = [&](const auto& other) { return other.first == name; };
    if (std::any_of(request.params.begin(), request.params.end(), is_given))
      reject(fmt::format("--param {}: {} is given twice", param, name), fmt::format("Write {}=v1,v2.", name));
    request.params.emplace_back(std::move(name), parse_names("--param", values));
  }
  request.setting = setting.variable.empty() ? "--hw-queues" : setting.variable;
  request.sim = flags.sim;
  request.repeats = static_cast<int>(whole_number("--processes", flags.repeats, 1, 1000, "not a number of processes"));
  request.resumes = flags.resumes;
  request.overwrites = flags.is_forced;
  return request;
}

ChildRequest child_of(const QueuesSweepFlags& flags, const std::string& device, const QueueSetting& setting,
                      const QueuesPoint& point) {
  ChildRequest child;
  child.limit_ns = flags.limit_ns();
  FlagValues values = {{"--device", device},
                       {"--streams", std::to_string(point.streams)},
                       {"--scale", std::string(name_of(point.scale))}};
  for (const auto& [name, value] : point.params) values.emplace_back("--param", name + "=" + value);
  for (const std::string& setting : flags.sim) values.emplace_back("--sim", setting);
  values.insert(values.end(), {{"--iterations", flags.iterations},
                               {"--warmup", flags.warmup},
                               {"--precision", flags.precision},
                               {"--submit", flags.submit},
                               {"--placement", flags.placement},
                               {"--seed", flags.seed},
                               {"--compute-units", flags.compute_units}});
  child.arguments = run_words(flags.workload, values, flags.skips_check);
  setting.apply(point.queues, child);
  return child;
}

int execute_queues_sweep(const QueuesSweepFlags& flags) {
  if (job_ranks().count > 1)
    reject("queues sweep: this job has several ranks", "Start it as one process, without mpirun or srun.");
  flags.limit_ns();  // rejects
  // Closed again before the first child, so that the child has the device to itself.
  DeviceOptions options = device_options("", flags.sim);
  options.compute_units = one_unit_count(flags.compute_units);
  const DeviceInfo info = open_able(flags.device, options)->info();
  const QueueSetting setting = queue_setting(info);
  QueuesSweepRequest request = request_of(flags, info, setting);
  check_queues_sweep(info, request);
  request.output = flags.document.path();
  if (request.output.empty()) {
    std::string name = info.name;
    std::replace(name.begin(), name.end(), ':', '-');
    make_folders("results");
    request.output = default_output(fmt::format("results/queues-sweep-{}-{}", workload_of(request.run).name, name),
                                    ".json", earlier_output(flags.is_forced, flags.resumes));
  }
  ProgressLine line(flags.is_quiet);
  QueuesSweepControl control;
  control.on_begin = [&](const QueuesPoint& point, std::size_t index, std::size_t total) {
    line.show(fmt::format("{}: {}, {} streams, {}", request.run.workload, setting.text(point.queues), point.streams,
                          name_of(point.scale)),
              static_cast<int>(index), static_cast<int>(total));
  };
  control.run = [&](const QueuesPoint& point) {
    ChildOutcome child =
        run_child(child_of(flags, child_device(info, flags.device), setting, point), catch_interrupts());
    PointRun run;
    run.is_interrupted = child.end == ChildEnd::interrupted;
    run.failure = child.message;
    run.result = std::move(child.document);
    return run;
  };
  const Json document = run_queues_sweep(info, request, run_context(), control);
  line.clear();
  const Json& sweep = document["sweep"];
  const bool is_stopped = sweep["status"] != "complete";
  if (flags.document.prints_json()) {
    write_json(to_text(document));
  } else if (!flags.is_quiet) {
    print_out("{}\nWritten to {}\n", describe_queues_sweep(document), request.output.string());
    if (is_stopped)
      print_out("Interrupted: {} of {} points were begun. The same command with --resume runs the rest.\n",
                sweep["points"].size(), sweep["asked"].get<std::size_t>());
  }
  if (is_stopped) return kExitInterrupted;
  const auto is_bad = [](const Json& point) { return point["failure"].is_string(); };
  const auto bad = std::find_if(sweep["points"].begin(), sweep["points"].end(), is_bad);
  if (bad == sweep["points"].end()) return 0;
  fail(fmt::format("{} of {} points failed; the first: {}",
                   std::count_if(sweep["points"].begin(), sweep["points"].end(), is_bad), sweep["points"].size(),
                   (*bad)["failure"].get<std::string>()),
       "With --resume only the failed points run again.");
}

}  // namespace

CliCommand queues_sweep() {
  return command("sweep", "run a workload over queue counts, stream counts and sizes", execute_queues_sweep);
}

}  // namespace weir::cli
