#include "run/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/named_values.h"
#include "base/schemas.h"
#include "run/analyze.h"
#include "run/describe_timeline.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/slice.h"
#include "trace/analyse/waterfall.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

constexpr std::size_t kMaxTracedSpans = 400'000;  // limit of sessions, and about 250 MB as JSON

Json hop_json(const Hop& hop) {
  Json json = WEIR_NAMED(hop.from, hop.to, hop.count, hop.negative, hop.unknown,
                         named("duration_ns", hop_duration_json(hop)), hop.total_ns, hop.share);
  if (hop.count == 0)
    for (const char* figure : {"total_ns", "share"}) json[figure] = nullptr;
  return json;
}

Json waterfall_json(const Waterfall& found) {
  return json_list(found.classes, [](const ClassWaterfall& one) {
    const auto hop_at = [&](const std::optional<std::size_t>& at) { return at ? hop_json(one.hops[*at]) : Json(); };
    Json json =
        WEIR_NAMED(one.kind, one.commands, one.waited_for, one.way_ns, named("hops", json_list(one.hops, hop_json)));
    json["missing"] = json_list(one.missing, [](const MissingStage& at) { return WEIR_NAMED(at.stage, at.reason); });
    json["dominating"] = hop_at(one.dominating);
    json["dominating_words"] = one.words;
    json["dominating_to_end"] = hop_at(one.dominating_to_end);
    json["dominating_to_end_words"] = one.words_to_end;
    return json;
  });
}

Json device_json(const Timeline& whole, std::uint16_t device) {
  const Timeline part = slice(whole, device);
  const Breakdown found = breakdown(part);
  Json json = Json::object();
  json["device"] = device < whole.devices.size() ? Json(whole.devices[device].label) : Json(nullptr);
  json["id"] = device < whole.devices.size() ? Json(whole.devices[device].id) : Json(nullptr);
  json.update(WEIR_NAMED(found.commands, found.without_times));
  Json kinds = Json::object();
  for (std::size_t i = 0; i < found.kinds.size(); ++i)
    if (found.kinds[i].commands > 0) kinds[to_string(static_cast<SpanKind>(i))] = found.kinds[i].commands;
  json.update(WEIR_NAMED(std::move(kinds), found.streams));
  json.update(WEIR_NAMED(positive_or_null(found.queues), found.copy_queues));
  json["dependencies"] = part.has_dependencies ? Json(part.dependencies.size()) : Json(nullptr);
  const BusyTimes times = found.times.value_or(BusyTimes());
  Json ns = WEIR_NAMED(times.span_ns, times.busy_ns, times.compute_ns, times.communication_ns, times.copy_ns,
                       times.overlapped_ns);
  if (!found.times)
    for (Json& value : ns) value = nullptr;
  json.update(ns);
  json["reason"] = found.times ? Json(nullptr) : Json(found.reason);
  const Waterfall way = waterfall(part);
  json["waterfall"] = waterfall_json(way);
  json["waterfall_reason"] = way.classes.empty() ? Json(way.reason) : Json(nullptr);
  return json;
}

// The cost of tracing: compares the traced pass with the timed one, iteration by iteration.
Json tracing_json(const Result& timed, const TracedPass& traced, std::uint64_t commands, Json& unavailable) {
  std::set<std::uint32_t> kept;
  for (const Span& span : traced.timeline.spans) kept.insert(span.iteration);
  Json json =
      WEIR_NAMED(traced.timeline.source, named("iterations", traced.latency_ns.size()),
                 named("kept_iterations", kept.size()), traced.timeline.has_exact_gaps, traced.timeline.clock_error_ns);
  const bool is_comparable = timed.latency_ns && timed.sync_mode == "per_iteration" && !traced.latency_ns.empty();
  const double after = is_comparable ? median(traced.latency_ns) : 0,
               before = is_comparable ? timed.latency_ns->p50 : 0;
  const auto figure = [&](double value) { return is_comparable ? number_or_null(value) : Json(nullptr); };
  json["timed_ns"] = {{"p50", figure(before)}};
  json["traced_ns"] = {{"p50", figure(after)}};
  json["cost_ns_per_iteration"] = figure(after - before);
  json["cost_ns_per_command"] = figure((after - before) / static_cast<double>(std::max<std::uint64_t>(commands, 1)));
  json["ratio"] = figure(before > 0 ? after / before : 0);
  if (!is_comparable)
    unavailable["tracing.cost_ns_per_iteration"] =
        "only where the host waits for each iteration (--sync-mode per_iteration) can passes be compared";
  return json;
}

Json properties_of(const DeviceInfo& info) {
  Json json = Json::object();
  if (info.memory_bytes.value) json["totalGlobalMem"] = *info.memory_bytes.value;
  if (info.multiprocessors.value) json["numSms"] = *info.multiprocessors.value;
  return json;
}

}  // namespace

Json describe_devices(const Timeline& timeline) {
  Json devices = Json::array();
  if (timeline.spans.empty()) return devices;
  for (std::uint16_t i = 0; i < std::max<std::size_t>(timeline.devices.size(), 1); ++i) {
    Json device = device_json(timeline, i);
    if (device["commands"] != 0 || device["without_times"] != 0) devices.push_back(std::move(device));
  }
  return devices;
}

WorkloadProfile profile_workload(Device& device, const RunRequest& request, int traced_iterations,
                                 const RunContext& context, const RunControl& control, const TracePass& trace) {
  WorkloadProfile profile;
  const DeviceInfo info = device.info();
  const Ranks ranks = control.has_ranks() ? control.communicator->ranks() : Ranks{};
  profile.rank = ranks.rank;
  profile.ranks = ranks.count;
  RunRequest untraced = request;
  untraced.traces = false;
  const Result timed = run_workload(device, untraced, context, control);
  if (timed.status == "failed") throw timed.error();

  const BuiltRun built = build_run(info, request, ranks);
  const std::size_t commands = built.step.commands().size();
  const int iterations =
      std::clamp(traced_iterations, 1, static_cast<int>(std::max<std::size_t>(1, kMaxTracedSpans / commands)));
  if (control.progress) control.progress("trace", 0, iterations);
  TracedPass traced = trace ? trace(built, iterations)
                            : run_traced_pass(device, built.step, built.placement, built.submit,
                                              TraceSchedule(iterations), control, workload_of(request).roles);
  describe_timeline(traced, info, built.step, built.placement, built.submit, "weir profile " + timed.workload);

  Json& document = profile.document;
  Json unavailable = Json::object();
  document["schema"] = schemas::profile;
  document.update(WEIR_NAMED(timed.created, timed.command_line, timed.workload));
  document["program"] = nullptr;
  document["run"] = WEIR_NAMED(timed.streams, timed.submit, timed.placement, timed.scale, timed.precision,
                               timed.parameters, timed.sync_mode, timed.seed, request.iterations);
  document["run"]["commands_per_iteration"] = commands;
  document["run"]["ranks"] = ranks.count;
  document.update(WEIR_NAMED(timed.device, timed.environment, timed.check));
  document["tracing"] = tracing_json(timed, traced, commands, unavailable);
  document["devices"] = describe_devices(traced.timeline);
  if (traced.timeline.spans.empty()) unavailable["devices"] = fmt::format("no timeline: {}", traced.timeline.source);
  document["files"] = Json::array();
  Json warnings = Json::array();
  for (const Warning& warning : timed.warnings)
    warnings.push_back({{"code", warning.code}, {"text", warning.message}, {"advice", warning.advice}});
  if (iterations < traced_iterations)
    warnings.push_back({{"code", "few_traced"},
                        {"text", fmt::format("{} of {} iterations were traced: more commands than fit", iterations,
                                             traced_iterations)},
                        {"advice", "Use a smaller --scale for a longer trace."}});
  document.update(WEIR_NAMED(std::move(warnings), traced.timeline.notes, std::move(unavailable)));
  profile.is_interrupted = timed.status == "interrupted" || control.is_stopped();
  profile.timeline = std::move(traced.timeline);
  profile.device_properties = properties_of(info);
  return profile;
}

}  // namespace weir
