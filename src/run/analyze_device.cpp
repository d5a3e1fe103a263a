// The part of the `analyze` document about each device of a trace.
#include "run/analyze_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/named_values.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/collectives.h"
#include "trace/analyse/concurrency.h"
#include "trace/analyse/critical_path.h"
#include "trace/analyse/false_serialisation.h"
#include "trace/analyse/gaps.h"
#include "trace/analyse/host_stalls.h"
#include "trace/analyse/lane_use.h"
#include "trace/analyse/memory_held.h"
#include "trace/analyse/model_use.h"
#include "trace/analyse/overlap_slowdown.h"
#include "trace/analyse/queue_map.h"
#include "trace/analyse/queue_switch.h"
#include "trace/analyse/slice.h"
#include "trace/analyse/top_kernels.h"
#include "trace/analyse/waterfall.h"
#include "trace/analyse/work_uses.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

constexpr double kMaxUnexplained = 0.5;  // share of a critical path that draws a caveat
constexpr std::size_t kMaxLanes = 1000;  // streams or queues listed in a document

constexpr std::array kKinds = {SpanKind::kernel, SpanKind::collective, SpanKind::copy, SpanKind::memset,
                               SpanKind::host};

Json times_json(const BusyTimes& times, const AnalysisWords& words) {
  return WEIR_NAMED(words.at(times.first_ns), words.at(times.last_ns), times.span_ns, times.busy_ns, times.idle_ns,
                    times.compute_ns, times.communication_ns, times.copy_ns, times.hidden_communication_ns,
                    times.exposed_communication_ns, times.communication_beside_compute_ns, times.copy_beside_compute_ns,
                    times.overlapped_ns);
}

Json levels_json(const std::optional<ConcurrencyLevels>& levels) {
  if (!levels) return Json();
  return WEIR_NAMED(levels->mean, levels->max, levels->busy_ns, levels->exactly_ns, levels->beyond_ns);
}

Json backlog_json(const std::optional<Backlog>& backlog, const AnalysisWords& words) {
  if (!backlog) return Json();
  return WEIR_NAMED(backlog->commands, backlog->peak, named("peak_at_ns", words.at(backlog->peak_ns)), backlog->mean,
                    backlog->max_in_bucket, backlog->mean_in_bucket);
}

Json lanes_json(std::vector<LaneUse> lanes, const AnalysisWords& words, bool are_queues, std::size_t* left_out) {
  if (lanes.size() > kMaxLanes) {
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const LaneUse& a, const LaneUse& b) { return a.busy_ns > b.busy_ns; });
    *left_out = lanes.size() - kMaxLanes;
    lanes.resize(kMaxLanes);
  }
  return json_list(lanes, [&](const LaneUse& lane) {
    Json json = {{are_queues ? "queue" : "stream",
                  are_queues ? words.queue(lane.lane) : words.stream(static_cast<std::uint16_t>(lane.lane))}};
    json.update(WEIR_NAMED(lane.commands, lane.busy_ns, lane.utilisation));
    json.update(WEIR_NAMED(words.at(lane.first_ns), words.at(lane.last_ns)));
    json["backlog"] = backlog_json(lane.backlog, words);
    return json;
  });
}

Json queue_map_json(const QueueMap& map, const AnalysisWords& words) {
  Json json = WEIR_NAMED(map.is_fixed, map.shared_queues, map.sharing_streams);
  json["queues"] = json_list(map.queues, [&](const QueueStreams& queue) -> Json {
    return {{"queue", words.queue(queue.queue)},
            {"commands", queue.commands},
            {"streams", json_list(queue.streams, [&](std::uint16_t stream) { return words.stream(stream); })}};
  });
  json["moving"] = Json::array();
  for (const StreamQueues& stream : map.streams) {
    if (stream.queues.size() < 2 || json["moving"].size() == kMaxLanes) continue;
    json["moving"].push_back({{"stream", words.stream(stream.stream)},
                              {"changes", stream.changes},
                              {"queues", json_list(stream.queues, [&](const QueueOfStream& queue) -> Json {
                                 return WEIR_NAMED(words.queue(queue.queue), queue.commands);
                               })}});
  }
  json["change_count"] = map.change_count;
  json["changes"] = json_list(map.changes, [&](const QueueChange& change) -> Json {
    return WEIR_NAMED(words.at(change.at_ns), words.stream(change.stream), words.queue(change.from),
                      words.queue(change.to));
  });
  return json;
}

Json serialisation_json(const FalseSerialisation& found, const AnalysisWords& words) {
  Json json = WEIR_NAMED(found.are_dependencies_known, found.pairs, found.lost_ns, found.behind, found.behind_ns,
                         found.wall_ns, found.back_to_back, found.not_ready, found.unknown, found.gap_limit_ns,
                         found.gap_limit_origin, found.stream_pairs);
  json["by_streams"] = json_list(found.by_streams, [&](const SerialisedStreams& pair) -> Json {
    return WEIR_NAMED(named("streams", {words.stream(pair.a), words.stream(pair.b)}), words.queue(pair.queue),
                      pair.pairs, pair.lost_ns);
  });
  json["worst"] = json_list(found.worst, [&](const SerialisedPair& pair) {
    Json one = {{"first", words.name(pair.first_name)},
                {"second", words.name(pair.second_name)},
                {"streams", {words.stream(pair.first_stream), words.stream(pair.second_stream)}},
                {"queue", words.queue(pair.queue)}};
    one.update(WEIR_NAMED(pair.lost_ns, pair.gap_ns, pair.is_behind));
    return one;
  });
  return json;
}

Json switch_json(const QueueSwitch& found) {
  const auto gap = [](const std::optional<SwitchGap>& gap) {
    return gap ? WEIR_NAMED(gap->count, named("p50", gap->median_ns)) : Json();
  };
  Json json =
      WEIR_NAMED(named("same_stream_ns", gap(found.same_stream)), named("same_queue_ns", gap(found.same_queue)),
                 named("other_queue_ns", gap(found.other_queue)), named("unknown_queue_ns", gap(found.unknown_queue)));
  json.update(WEIR_NAMED(found.same_queue_overhead_ns, found.other_queue_overhead_ns, found.unknown_queue_overhead_ns));
  return json;
}

Json launch_bound_json(const LaunchBound& bound, const Timeline& part, const AnalysisWords& words) {
  Json json = WEIR_NAMED(bound.gaps, bound.idle_ns, bound.host_gaps, bound.host_ns, bound.launch_ns,
                         bound.share_of_idle, bound.calling_gaps, bound.calling_ns, bound.calling_launch_ns,
                         bound.held_gaps, bound.held_ns, bound.held_most_ns, bound.unknown_gaps, bound.unknown_ns,
                         bound.synchronizing_ns, bound.in_calls_ns, bound.outside_ns);
  json["held_before"] = bound.held_gaps > 0 ? words.span(part, bound.held_span) : Json();
  json["longest"] = json_list(bound.longest, [&](const LaunchStall& stall) -> Json {
    return {{"at_ns", words.at(stall.from_ns)},
            {"idle_ns", stall.to_ns - stall.from_ns},
            {"host_ns", stall.submitted_ns - stall.from_ns},
            {"before", words.span(part, stall.span)},
            {"call", words.call(part, stall.call)}};
  });
  return json;
}

Json loading_json(const DataLoading& loading, const AnalysisWords& words) {
  Json json = WEIR_NAMED(loading.waits, loading.total_ns, loading.idle_ns);
  json["longest"] = json_list(loading.longest, [&](const LoaderWait& wait) -> Json {
    return {{"at_ns", words.at(wait.from_ns)}, {"took_ns", wait.to_ns - wait.from_ns}, {"idle_ns", wait.idle_ns}};
  });
  return json;
}

Json blocked_json(const HostBlocked& blocked, const Timeline& part, const AnalysisWords& words, std::size_t top) {
  const auto calls = [&](const BlockedCalls& found) {
    Json json = WEIR_NAMED(found.count, found.total_ns);
    json["longest"] = json_list(found.longest, [&](const BlockedCall& call) -> Json {
      return {{"call", words.call(part, call.call)},
              {"at_ns", call.call < part.calls.size() ? words.at(part.calls[call.call].started_ns) : Json()},
              {"took_ns", call.took_ns},
              {"backlog", call.backlog}};
    });
    json["sites"] = json_list(first_of(found.sites, top), [&](const CallSite& site) {
      return WEIR_NAMED(named("call", words.name(site.name)), words.name(site.line), site.count, site.total_ns);
    });
    return json;
  };
  Json json =
      WEIR_NAMED(blocked.launches, named("launch_ns", Json{{"p50", blocked.launch_p50_ns}}), blocked.most_backlog);
  json.update(
      WEIR_NAMED(calls(blocked.queue_full), calls(blocked.slow), calls(blocked.synchronize), calls(blocked.copies)));
  return json;
}

Json path_json(const CriticalPath& path, const Timeline& part, const AnalysisWords& words, std::size_t top) {
  Json json = WEIR_NAMED(path.span_ns, path.steps, path.commands, path.queue_steps, path.known, path.in_calls_ns);
  json["resources"] = Json::object();
  for (std::size_t i = 0; i < kPathResources; ++i)
    json["resources"][to_string(static_cast<PathResource>(i))] = {{"ns", path.ns[i]}, {"share", path.share[i]}};
  // A path that is mostly gaps between commands shows no cause.
  const double unexplained = path.share[static_cast<std::size_t>(PathResource::waiting)] +
                             path.share[static_cast<std::size_t>(PathResource::unknown)];
  json["caveat"] = unexplained > kMaxUnexplained
                       ? Json(fmt::format("the path says little: {:.0f} % of it lies between commands that nothing in "
                                          "the source ties ({})",
                                          100 * unexplained, path.known))
                       : Json();
  const auto names = [&](const std::vector<PathName>& all) {
    return json_list(first_of(all, top), [&](const PathName& name) {
      return WEIR_NAMED(words.name(name.name), name.resource, name.steps, name.total_ns);
    });
  };
  json.update(WEIR_NAMED(names(path.names), names(path.calls)));
  json["longest"] = json_list(path.longest, [&](const PathStep& step) -> Json {
    return {{"resource", to_string(step.resource)},
            {"at_ns", words.at(step.from_ns)},
            {"took_ns", step.to_ns - step.from_ns},
            {"command", words.span(part, step.span)},
            {"call", words.call(part, step.call)}};
  });
  return json;
}

Json gaps_json(const std::optional<IdleGaps>& found, const Timeline& part, const AnalysisWords& words) {
  if (!found) return Json();
  const Json duration_ns = {{"mean", found->mean_ns},
                            {"p50", found->p50_ns},
                            {"p95", found->p95_ns},
                            {"p99", found->p99_ns},
                            {"max", found->max_ns}};
  Json json = WEIR_NAMED(found->count, found->total_ns, duration_ns);
  json["histogram"] =
      json_list(found->histogram, [](const GapBin& bin) { return WEIR_NAMED(bin.from_ns, bin.count, bin.total_ns); });
  json["longest"] = json_list(found->longest, [&](const LongGap& gap) -> Json {
    return {{"at_ns", words.at(gap.from_ns)},
            {"took_ns", gap.to_ns - gap.from_ns},
            {"before", words.span(part, gap.before)},
            {"after", words.span(part, gap.after)}};
  });
  return json;
}

Json top_json(const TopKernels& found, const AnalysisWords& words) {
  Json json = WEIR_NAMED(found.kernels, found.commands, found.total_ns, found.rest_count, found.rest_ns);
  json["top"] = json_list(found.top, [&](const KernelUse& use) {
    const Json duration_ns = {
        {"mean", use.mean_ns}, {"p50", use.p50_ns}, {"p99", use.p99_ns}, {"min", use.min_ns}, {"max", use.max_ns}};
    return WEIR_NAMED(words.name(use.name), use.kind, use.count, use.total_ns, duration_ns, use.share);
  });
  return json;
}

Json iterations_json(const Breakdown& found, const AnalysisWords& words) {
  return {{"count", found.iteration_count},
          {"outside", found.outside_iterations},
          {"list", json_list(found.iterations, [&](const IterationTimes& iteration) -> Json {
             return {{"number", iteration.number},
                     {"name", words.name(iteration.name)},
                     {"commands", iteration.commands},
                     {"overlap_efficiency", iteration.times ? overlap_efficiency_json(*iteration.times) : Json()},
                     {"times", iteration.times ? times_json(*iteration.times, words) : Json()}};
           })}};
}

}  // namespace

Json hop_duration_json(const Hop& hop) {
  const auto figure = [&](double ns) { return hop.count == 0 ? Json() : Json(ns); };
  return {{"mean", figure(hop.mean_ns)},
          {"p50", figure(hop.p50_ns)},
          {"p95", figure(hop.p95_ns)},
          {"p99", figure(hop.p99_ns)}};
}

Json waterfall_json(const Timeline& timeline) {
  const Waterfall found = waterfall(timeline);
  if (found.classes.empty()) return Json();
  return {{"classes", json_list(found.classes, [](const ClassWaterfall& each) {
             Json missing = Json::object();
             for (const MissingStage& stage : each.missing) missing[to_string(stage.stage)] = stage.reason;
             Json json = WEIR_NAMED(each.kind, each.commands, each.waited_for, each.way_ns);
             json["hops"] = json_list(each.hops, [](const Hop& hop) {
               return WEIR_NAMED(hop.from, hop.to, hop.count, hop.negative, hop.worst_negative_ns, hop.unknown,
                                 named("duration_ns", hop_duration_json(hop)), hop.share);
             });
             json["missing"] = std::move(missing);
             json.update(WEIR_NAMED(each.dominating, each.dominating_to_end, each.words, each.words_to_end));
             return json;
           })}};
}

Json analyze_device(const Timeline& whole, std::uint16_t device, std::int64_t origin_ns,
                    std::span<const LastArrival> arrivals, const AnalyzeOptions& options) {
  const AnalysisWords words{whole, origin_ns};
  const Timeline part = slice(whole, device);
  const TraceDevice& facts = whole.devices[device];
  Json unavailable = Json::object();
  Json json;
  // Adds a value, or null and the reason.
  const auto add = [&](const char* name, const std::string& reason, auto&& value) {
    json[name] = reason.empty() ? Json(value()) : Json();
    if (!reason.empty()) unavailable[name] = reason;
  };

  json.update(WEIR_NAMED(whole.processes[facts.process].rank, facts.id, facts.label));
  const std::vector<TraceRange> iterations = iteration_ranges(whole, facts.process);
  const Breakdown times = breakdown(part, iterations);
  json.update(WEIR_NAMED(times.commands, times.streams));
  json.update(WEIR_NAMED(positive_or_null(times.queues), positive_or_null(times.copy_queues)));
  if (times.queues == 0) unavailable["queues"] = "the source names no hardware queues";
  json["times"] = times.times ? times_json(*times.times, words) : Json();
  if (!times.times) unavailable["times"] = times.reason;
  json["kinds"] = Json::object();
  for (const SpanKind kind : kKinds) {
    const KindTotal& total = times.kinds[static_cast<std::size_t>(kind)];
    if (total.commands > 0) json["kinds"][to_string(kind)] = WEIR_NAMED(total.commands, total.sum_ns);
  }
  json["work"] = json_list(work_uses(part, whole.names), [](const WorkUse& use) {
    return WEIR_NAMED(to_string(use.work), use.commands, use.total_ns, use.busy_ns, use.share);
  });
  const ModelUse model = model_use(part, iterations);
  add("model", model.reason, [&] { return model_json(model, whole.names, options.top); });
  if (model.reason.empty() && model.modules.empty())
    unavailable["model.modules"] = "the source names no modules (PyTorch: with_stack=True or with_modules=True)";
  if (model.reason.empty() && model.steps.empty()) unavailable["model.steps"] = "the source marks no iterations";
  json["copies"] = json_list(first_of(times.copies, options.top), [&](const CopyUse& use) {
    return WEIR_NAMED(words.name(use.name), use.kind, use.commands, positive_or_null(use.bytes), use.total_ns,
                      use.alone_ns);
  });
  const MemoryHeld memory = memory_held(part, iterations);
  add("memory", memory.reason, [&] { return memory_json(memory, whole, iterations, origin_ns); });
  if (memory.reason.empty() && memory.steps.empty())
    unavailable["memory.steps"] = "the source marks no iterations, or none in which memory was allocated";
  std::string no_efficiency;
  json["efficiency"] = efficiency_json(part, whole, facts, options, no_efficiency);
  if (!no_efficiency.empty()) unavailable["efficiency"] = no_efficiency;
  json["iterations"] = times.iteration_count > 0 ? iterations_json(times, words) : Json();
  if (times.iteration_count == 0) unavailable["iterations"] = "the source marks no iterations";

  const ConcurrencyProfile profile = concurrency_profile(part);
  json["concurrency"] = WEIR_NAMED(levels_json(profile.all), levels_json(profile.kernels));

  LaneUses lanes = lane_use(part);
  std::size_t streams_left_out = 0, queues_left_out = 0;
  json["lanes"] = {{"bucket_ns", lanes.bucket_ns},
                   {"backlog", backlog_json(lanes.device, words)},
                   {"streams", lanes_json(lanes.streams, words, false, &streams_left_out)},
                   {"queues", lanes_json(lanes.queues, words, true, &queues_left_out)},
                   {"streams_left_out", streams_left_out},
                   {"queues_left_out", queues_left_out}};
  if (!lanes.device)
    unavailable["lanes.backlog"] = lanes.reason.empty() ? "no command has a time of submission" : lanes.reason;

  const QueueMap map = queue_map(part);
  add("queue_map", map.queues.empty() ? map.reason : "", [&] { return queue_map_json(map, words); });
  const FalseSerialisation serial = false_serialisation(part);
  add("false_serialisation", serial.reason, [&] { return serialisation_json(serial, words); });
  const QueueSwitch switches = queue_switch(part);
  add("queue_switch", switches.reason, [&] { return switch_json(switches); });

  const HostStalls stalls = host_stalls(part, whole.names);
  add("launch_bound", stalls.launch_bound ? "" : stalls.launch_bound_reason,
      [&] { return launch_bound_json(*stalls.launch_bound, part, words); });
  add("host_blocked", stalls.blocked ? "" : stalls.blocked_reason,
      [&] { return blocked_json(*stalls.blocked, part, words, options.top); });
  add("data_loading", stalls.loading ? "" : stalls.loading_reason,
      [&] { return loading_json(*stalls.loading, words); });
  const std::optional<CriticalPath> path = critical_path(part);
  add("critical_path", path ? "" : "no command has times", [&] { return path_json(*path, part, words, options.top); });
  const Collectives found = collectives(part);
  add("collectives", found.count == 0 ? found.reason : "", [&] { return collectives_json(found, words); });
  if (found.count > 0 && !found.reason.empty()) unavailable["collectives.bandwidth"] = found.reason;
  const bool communicates = times.times && times.times->communication_ns > 0;
  add("overlap", communicates ? "" : "no communication", [&] { return overlap_json(part); });
  const bool is_exposed = times.times && times.times->exposed_communication_ns > 0;
  add("exposed_causes",
      is_exposed     ? ""
      : communicates ? "no communication was exposed: something else always ran"
                     : "no communication",
      [&] { return exposed_causes_json(exposed_causes(part, arrivals, iterations), part, words); });
  const OverlapSlowdown slowdown = overlap_slowdown(part);
  add("overlap_slowdown", slowdown.ratio ? "" : slowdown.reason,
      [&] { return slowdown_json(slowdown, words, options.top); });
  json["waterfall"] = waterfall_json(part);
  if (json["waterfall"].is_null()) unavailable["waterfall"] = waterfall(part).reason;
  json["top"] = top_json(top_kernels(part, options.top), words);
  const GapsFound idle = gaps(part);
  json["gaps"] = {{"device", gaps_json(idle.device, part, words)},
                  {"within_streams", gaps_json(idle.within_streams, part, words)}};
  if (!idle.device) unavailable["gaps.device"] = idle.reason;
  json["unavailable"] = std::move(unavailable);
  return json;
}

}  // namespace weir
