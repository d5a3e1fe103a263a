#include "run/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/options.h"
#include "run/check.h"
#include "run/metrics.h"
#include "run/passes.h"
#include "run/ranks.h"
#include "run/soak.h"

namespace weir {
namespace {

constexpr std::string_view kSyncModes[] = {"per_iteration", "end_only", "none"};

int checked_streams(const Workload& workload, int asked) {
  if (asked == 0) return workload.streams.recommended;
  if (asked < workload.streams.min || asked > workload.streams.max)
    reject_setting(
        "streams", std::to_string(asked),
        fmt::format("{} runs on {} to {} streams", workload.name, workload.streams.min, workload.streams.max),
        fmt::format("{} is recommended.", workload.streams.recommended));
  return asked;
}

Precision checked_precision(const RunRequest& request, const DeviceInfo& info) {
  const Precision precision = precision_of(request);
  if (std::find(info.precisions.begin(), info.precisions.end(), precision) != info.precisions.end()) return precision;
  std::vector<std::string_view> names;
  for (const Precision supported : info.precisions) names.push_back(name_of(supported));
  reject_setting("precision", name_of(precision), fmt::format("device '{}' does not compute in it", info.name),
                 fmt::format("It has {}.{}", fmt::join(names, ", "),
                             is_fp8(precision) ? " fp8_e4m3 takes an NVIDIA GPU of compute capability 8.9 or later; the "
                                                 "cpu rounds to both formats by itself."
                                               : ""));
}

// Streams that share a hardware queue may block each other, which would explain poor scaling.
void warn_about_shared_queues(Result& result, const DeviceInfo& info, int streams) {
  const std::optional<int> queues = info.hardware_queues.value;
  if (!queues || streams <= *queues) return;
  std::string advice = fmt::format("Use --streams {} or fewer to give each its own", *queues);
  if (const int most = std::min(streams, info.max_hardware_queues); most > *queues)
    advice += fmt::format(", or {}{}", info.queue_setting(most),
                          info.queue_variable.empty() ? "" : " in the environment when the program starts");
  result.warnings.push_back(
      {"shared_queues", fmt::format("{} streams share the {} hardware queues of '{}'", streams, *queues, info.name),
       advice + "."});
}

SubmitChoice checked_submit(const DeviceInfo& info, const SubmitChoice& asked, int streams) {
  SubmitChoice submit = asked.fitted_to(streams);
  if (submit.mode == SubmitMode::graph && !info.graphs)
    reject_setting("submit", submit.name, fmt::format("device '{}' has no graphs: {}", info.name, info.graphs.reason),
                   "Use inline or threads.");
  if (!submit.channel.empty() && info.is_virtual)
    reject_setting(
        "submit", submit.name,
        fmt::format("'{}' lives in virtual time, in which a channel between real threads costs nothing", info.name),
        "Use inline or threads there; channels are measured on null, cpu and GPUs.");
  if (!submit.policy.empty() && !info.command_ends)
    reject_setting(
        "schedule", submit.policy,
        fmt::format("device '{}' does not tell which commands have ended: {}", info.name, info.command_ends.reason),
        "Leave it out there; it works on null, cpu, sim, CUDA and HIP.");
  return submit;
}

// Threads fill a shared queue in a different order on each rank, and then collectives at the heads wait for each other
// for ever. A single thread submits all ranks' collectives in the same order, with or without a channel.
void reject_entangled_collectives(const DeviceInfo& info, const BuiltRun& built) {
  const std::optional<int> queues = info.hardware_queues.value;
  if (built.submit.host_threads() == 1 || built.step.ranks().count == 1 || !queues ||
      built.placement.stream_count <= *queues)
    return;
  const auto commands = built.step.commands();
  const bool has_collectives = std::any_of(
      commands.begin(), commands.end(), [](const Command& command) { return command.kind == CommandKind::collective; });
  if (!has_collectives) return;
  reject_setting("submit", built.submit.name,
                 fmt::format("ranks could wait for each other for ever, because {} streams share {} hardware queues",
                             built.placement.stream_count, *queues),
                 fmt::format("Use --submit inline or graph, or a queue per stream ({}).",
                             info.queue_setting(built.placement.stream_count)));
}

// Workload files may hold streams until a flag is set, which requires that the device's kernels can see it.
void reject_probes(const DeviceInfo& info, const Step& step) {
  const auto commands = step.commands();
  const bool has_probes = std::any_of(commands.begin(), commands.end(), [](const Command& command) {
    return command.kind == CommandKind::kernel && kernel(command.kernel).is_probe;
  });
  if (!has_probes) return;
  for (const Capability* const needed : {&info.host_memory, &info.kernel_clock})
    if (!*needed)
      reject(fmt::format("device '{}' cannot hold a stream: {}", info.name, needed->reason), "Use --device cpu.");
}

// The work counted by the device in the last iteration, if it depends on the data.
double work_of(const Step& step, Session& session, bool computes) {
  if (!step.counted() || !computes) return step.work();
  const Access& where = step.counted()->where;
  std::vector<std::byte> bytes(step.buffers()[where.buffer].size_bytes());
  session.read(where.buffer, bytes);
  double sum = 0;
  for (std::uint64_t at = where.offset_bytes; at < where.offset_bytes + where.size_bytes; at += sizeof(std::int32_t)) {
    std::int32_t count = 0;
    std::memcpy(&count, bytes.data() + at, sizeof count);
    sum += count;
  }
  return sum * step.counted()->unit;
}

}  // namespace

std::string_view name_of(SyncMode mode) { return kSyncModes[static_cast<int>(mode)]; }

SyncMode sync_mode_named(std::string_view name) {
  for (const SyncMode mode : {SyncMode::per_iteration, SyncMode::end_only, SyncMode::none})
    if (name_of(mode) == name) return mode;
  const std::vector<std::string> names(std::begin(kSyncModes), std::end(kSyncModes));
  reject_setting("sync_mode", name, "there is no such mode", suggestion(name, names));
}

Json to_json(const DeviceInfo& info) {
  Json json = WEIR_NAMED(info.name, info.backend, info.model, text_or_null(info.driver),
                         named("hardware_queues", json_of(info.hardware_queues.value)),
                         named("multiprocessors", json_of(info.multiprocessors.value)));
  if (info.stream_compute_units > 0) json["compute_units"] = info.stream_compute_units;
  if (info.asked_compute_units != info.stream_compute_units) json["compute_units_asked"] = info.asked_compute_units;
  json["copy_engines"] = json_of(info.copy_engines.value);
  json["memory_bytes"] = json_of(info.memory_bytes.value);
  return json;
}

const Workload& workload_of(const RunRequest& request) {
  return request.loaded ? *request.loaded : workload_named(request.workload);
}

Scale scale_of(const RunRequest& request, const DeviceInfo& info) {
  return request.scale.value_or(info.is_gpu ? Scale::full : Scale::small);
}

Precision precision_of(const RunRequest& request) { return request.precision.value_or(workload_of(request).precision); }

BuiltRun build_run(const DeviceInfo& info, const RunRequest& request, Ranks ranks) {
  const Workload& workload = workload_of(request);
  const int streams = checked_streams(workload, request.streams);
  SubmitChoice submit = checked_submit(info, request.submit, streams);
  if (request.iterations < 1) reject_setting("iterations", std::to_string(request.iterations), "at least 1 is needed");
  if (request.duration_ns > 0 && request.sync != SyncMode::per_iteration)
    reject_setting("sync_mode", name_of(request.sync),
                   "iterations that overlap are known only at the end, so they cannot run for a given time",
                   "Use --sync-mode per_iteration, or --iterations.");
  if (request.warmup < 0) reject_setting("warmup", std::to_string(request.warmup), "cannot be negative");
  const Scale scale = scale_of(request, info);
  Params params(workload.params, scale, request.params);
  params.precision = checked_precision(request, info);
  params.seed = request.seed;
  params.ranks = ranks;
  Step step = workload.build(params, streams);
  reject_probes(info, step);
  Placement placement = request.placement->place(step);
  BuiltRun built{streams, std::move(submit), scale, std::move(params), std::move(step), std::move(placement)};
  reject_entangled_collectives(info, built);
  return built;
}

void check_request(const DeviceInfo& info, const RunRequest& request, Ranks ranks) { build_run(info, request, ranks); }

Result describe_run(const DeviceInfo& info, const RunRequest& request, const BuiltRun& built,
                    const RunContext& context) {
  const Workload& workload = workload_of(request);
  Result result;
  result.created = wall_time();
  result.command_line = context.command_line;
  result.environment = context.environment;
  result.workload = workload.name;
  result.category = workload.category;
  result.unit = workload.unit;
  result.scaling = name_of(workload.scaling);
  result.priority = workload.priority;
  for (const auto& [name, value] : built.params.values())
    std::visit([&, key = name](const auto& held) { result.parameters[key] = held; }, value);
  // A changed file is another workload even with the same name: comparisons use parameters.
  if (!workload.source.file.empty()) {
    result.parameters["definition"] = workload.source.hash;
    result.workload_file = workload.source.file;
    result.workload_text = workload.source.text;
  }
  result.precision = name_of(built.params.precision);
  result.sync_mode = name_of(request.sync);
  result.iterations = request.iterations;
  result.warmup = request.warmup;
  result.seed = request.seed;
  result.device = to_json(info);
  result.scale = name_of(built.scale);
  result.streams = built.streams;
  result.submit = built.submit.name;
  result.placement = built.placement.name;
  result.work_per_iteration = built.step.work();
  result.commands_per_iteration = built.step.commands().size();
  result.flop_per_iteration = built.step.cost().flop;
  result.bytes_per_iteration = built.step.cost().bytes;
  return result;
}

Result run_workload(Device& device, const RunRequest& request, const RunContext& context, const RunControl& control) {
  const Workload& workload = workload_of(request);
  const DeviceInfo info = device.info();
  const BuiltRun built = build_run(info, request, control.has_ranks() ? control.communicator->ranks() : Ranks{});
  const SubmitChoice& submit = built.submit;
  const Step& step = built.step;
  const Placement& placement = built.placement;

  Result result = describe_run(info, request, built, context);
  if (submit.mode == SubmitMode::eager) warn_about_shared_queues(result, info, placement.stream_count);

  std::optional<RankReports> reports;
  if (control.has_ranks()) {
    reports.emplace(*control.communicator, info);
  } else {
    result.unavailable["ranks"] =
        "one process: what ranks would exchange is copied or summed between streams of one device";
  }

  Soak soak;
  try {
    const TimedPass timed = [&] {
      const bool is_pipelined = request.sync != SyncMode::per_iteration;
      SessionOptions options = submit.session_options();
      options.is_pipelined = is_pipelined;
      // If the host waits, its clock is enough, and Weir adds no events to the streams. A graph is marked outside of
      // itself.
      options.marks_iterations = is_pipelined || (submit.mode == SubmitMode::graph && request.duration_ns == 0);
      options.follows_progress |= control.wants_progress();
      const auto session = device.prepare(step, placement, options);
      add_compilation(result, step, *session, info);
      const auto submitter = make_submitter(submit, step, placement, *session);
      SessionWatch watch(control, info, *session, step, placement, workload.roles);
      TimedPass pass = request.duration_ns > 0
                           ? run_soak_pass(device, *session, *submitter, request, control, &watch, soak)
                           : run_timed_pass(device, *session, *submitter, request, control, &watch);
      if (pass.failure != nullptr) {
        // The device's count can no longer be read.
        if (step.counted()) result.work_per_iteration = 0;
        return pass;
      }
      result.work_per_iteration = work_of(step, *session, info.computes);
      CheckReport check;
      if (!info.computes) {
        check.reason =
            info.is_virtual ? "simulated: computes nothing" : fmt::format("device '{}' computes nothing", info.name);
      } else if (!request.checks_output) {
        check.reason = "--no-check";
      } else {
        if (control.progress) control.progress("check", 0, 1);
        check = check_run(step, *session, *submitter, control.has_ranks() ? control.communicator : nullptr, watch);
      }
      result.check = check.to_json();
      if (check.status == CheckReport::Status::failed) {
        result.status = "failed";
        result.failure = fmt::format("{}: the output is wrong: {}", workload.name, check.reason);
      }
      if (reports) reports->gather_timed(result, pass);
      return pass;
    }();
    // The other ranks wait for this one somewhere, so all of them must end.
    if (timed.failure != nullptr && reports) std::rethrow_exception(timed.failure);
    if (result.status == "complete" && timed.is_interrupted) result.status = "interrupted";
    add_timed_metrics(result, timed, step, info.runs());
    if (request.duration_ns > 0) add_soak(result, timed, soak);
    if (info.is_virtual) {
      result.unavailable["metrics.floor_ns_per_command"] = kNoFloor;
    } else {
      result.floor_ns_per_command = floor_ns_per_command(step, placement, submit);
    }
    if (timed.failure != nullptr) {
      note_untraced(result, "the run failed before the traced pass");
      std::rethrow_exception(timed.failure);
    }
    Timeline timeline;
    if (!request.traces) {
      note_untraced(result, "the traced pass was left out (--no-trace)");
    } else if (!info.runs()) {
      note_untraced(result, fmt::format("device '{}' runs nothing", info.name));
    } else if (control.agree_to_stop()) {
      note_untraced(result, "interrupted before the traced pass");
    } else {
      try {
        timeline = add_traced_metrics(result, device, workload, step, placement, submit, control);
      } catch (const Error& error) {
        if (reports) throw;
        // The timed numbers remain valid; metrics that need a timeline are marked as unavailable.
        note_untraced(result, error.what());
        result.warnings.push_back(
            {"untraced", fmt::format("the traced pass failed: {}", error.what()), "Use --no-trace to leave it out."});
      }
    }
    if (reports) reports->gather_traced(result, step, timeline);
    // Marks an interrupted point, which --resume must run again.
    const bool is_stopped = control.agree_to_stop();
    if (result.status == "complete" && is_stopped) result.status = "interrupted";
  } catch (const std::exception& error) {
    if (reports) throw;
    const auto* const known_error = dynamic_cast<const Error*>(&error);
    result.status = "failed";
    result.fault = known_error != nullptr ? known_error->fault : Fault::run;
    result.failure = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? "out of host memory" : error.what();
    if (known_error != nullptr) {
      result.hint = known_error->hint;
      result.setting = known_error->setting;
    }
    if (result.check.empty()) {
      CheckReport check;
      check.reason = "the run failed before its output could be checked";
      result.check = check.to_json();
    }
  }
  return result;
}

}  // namespace weir
