#include "run/analyze_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "run/analyze_overlap.h"
#include "run/analyze_words.h"
#include "trace/analyse/breakdown.h"
#include "trace/analyse/collectives.h"
#include "trace/analyse/concurrency.h"
#include "trace/analyse/critical_path.h"
#include "trace/analyse/false_serialisation.h"
#include "trace/analyse/gaps.h"
#include "trace/analyse/host_stalls.h"
#include "trace/analyse/lane_use.h"
#include "trace/analyse/overlap_slowdown.h"
#include "trace/analyse/queue_map.h"
#include "trace/analyse/queue_switch.h"
#include "trace/analyse/slice.h"
#include "trace/analyse/top_kernels.h"
#include "trace/analyse/waterfall.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

constexpr double kMostUnexplained = 0.5;  // of a critical path, before it is called so
constexpr std::size_t kMostLanes = 1000;  // of streams and of queues in a document

constexpr std::array kKinds = {SpanKind::kernel, SpanKind::collective, SpanKind::copy, SpanKind::memset,
                               SpanKind::host};

using Words = TimelineWords;

Json times_json(const BusyTimes& times, const Words& words) {
  return {{"first_ns", words.at(times.first_ns)},
          {"last_ns", words.at(times.last_ns)},
          {"span_ns", times.span_ns},
          {"busy_ns", times.busy_ns},
          {"idle_ns", times.idle_ns},
          {"compute_ns", times.compute_ns},
          {"communication_ns", times.communication_ns},
          {"copy_ns", times.copy_ns},
          {"hidden_communication_ns", times.hidden_communication_ns},
          {"exposed_communication_ns", times.exposed_communication_ns},
          {"alone_communication_ns", times.alone_communication_ns},
          {"hidden_copy_ns", times.hidden_copy_ns},
          {"overlapped_ns", times.overlapped_ns}};
}

Json levels_json(const std::optional<ConcurrencyLevels>& levels) {
  if (!levels) return Json();
  return {{"mean", levels->mean},
          {"max", levels->max},
          {"busy_ns", levels->busy_ns},
          {"exactly_ns", levels->exactly_ns},
          {"beyond_ns", levels->beyond_ns}};
}

Json backlog_json(const std::optional<Backlog>& backlog, const Words& words, bool has_series) {
  if (!backlog) return Json();
  Json json = {{"commands", backlog->commands},
               {"peak", backlog->peak},
               {"peak_at_ns", words.at(backlog->peak_ns)},
               {"mean", backlog->mean}};
  if (has_series) {
    json["max_in_bucket"] = backlog->max_in_bucket;
    json["mean_in_bucket"] = backlog->mean_in_bucket;
  }
  return json;
}

Json lanes_json(std::vector<LaneUse> lanes, const Words& words, bool are_queues, std::size_t* left_out) {
  if (lanes.size() > kMostLanes) {
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const LaneUse& a, const LaneUse& b) { return a.busy_ns > b.busy_ns; });
    *left_out = lanes.size() - kMostLanes;
    lanes.resize(kMostLanes);
  }
  Json json = Json::array();
  for (const LaneUse& lane : lanes)
    json.push_back({{are_queues ? "queue" : "stream",
                     are_queues ? words.queue(lane.lane) : words.stream(static_cast<std::uint16_t>(lane.lane))},
                    {"commands", lane.commands},
                    {"busy_ns", lane.busy_ns},
                    {"utilisation", lane.utilisation},
                    {"first_ns", words.at(lane.first_ns)},
                    {"last_ns", words.at(lane.last_ns)},
                    {"backlog", backlog_json(lane.backlog, words, true)}});
  return json;
}

Json queue_map_json(const QueueMap& map, const Words& words) {
  Json json;
  json["is_fixed"] = map.is_fixed ? Json(*map.is_fixed) : Json();
  json["shared_queues"] = map.shared_queues;
  json["sharing_streams"] = map.sharing_streams;
  json["queues"] = Json::array();
  for (const QueueStreams& queue : map.queues) {
    Json streams = Json::array();
    for (const std::uint16_t stream : queue.streams) streams.push_back(words.stream(stream));
    json["queues"].push_back({{"queue", words.queue(queue.queue)}, {"commands", queue.commands}, {"streams", streams}});
  }
  json["moving"] = Json::array();
  for (const StreamQueues& stream : map.streams) {
    if (stream.queues.size() < 2 || json["moving"].size() == kMostLanes) continue;
    Json queues = Json::array();
    for (const QueueOfStream& queue : stream.queues)
      queues.push_back({{"queue", words.queue(queue.queue)}, {"commands", queue.commands}});
    json["moving"].push_back(
        {{"stream", words.stream(stream.stream)}, {"changes", stream.changes}, {"queues", queues}});
  }
  json["change_count"] = map.change_count;
  json["changes"] = Json::array();
  for (const QueueChange& change : map.changes)
    json["changes"].push_back({{"at_ns", words.at(change.at_ns)},
                               {"stream", words.stream(change.stream)},
                               {"from", words.queue(change.from)},
                               {"to", words.queue(change.to)}});
  return json;
}

Json serialisation_json(const FalseSerialisation& found, const Words& words) {
  Json json = {{"are_dependencies_known", found.are_dependencies_known},
               {"pairs", found.pairs},
               {"lost_ns", found.lost_ns},
               {"behind", found.behind},
               {"behind_ns", found.behind_ns},
               {"wall_ns", found.wall_ns},
               {"back_to_back", found.back_to_back},
               {"not_ready", found.not_ready},
               {"unknown", found.unknown},
               {"gap_limit_ns", found.gap_limit_ns},
               {"gap_limit_origin", found.gap_limit_origin},
               {"stream_pairs", found.stream_pairs}};
  json["by_streams"] = Json::array();
  for (const SerialisedStreams& pair : found.by_streams)
    json["by_streams"].push_back({{"streams", {words.stream(pair.a), words.stream(pair.b)}},
                                  {"queue", words.queue(pair.queue)},
                                  {"pairs", pair.pairs},
                                  {"lost_ns", pair.lost_ns}});
  json["worst"] = Json::array();
  for (const SerialisedPair& pair : found.worst)
    json["worst"].push_back({{"first", words.name(pair.first_name)},
                             {"second", words.name(pair.second_name)},
                             {"streams", {words.stream(pair.first_stream), words.stream(pair.second_stream)}},
                             {"queue", words.queue(pair.queue)},
                             {"lost_ns", pair.lost_ns},
                             {"gap_ns", pair.gap_ns},
                             {"is_behind", pair.is_behind}});
  return json;
}

Json switch_json(const QueueSwitch& found) {
  const auto gap = [](const std::optional<SwitchGap>& gap) {
    return gap ? Json{{"count", gap->count}, {"median_ns", gap->median_ns}} : Json();
  };
  return {{"same_stream", gap(found.same_stream)},
          {"same_queue", gap(found.same_queue)},
          {"other_queue", gap(found.other_queue)},
          {"unknown_queue", gap(found.unknown_queue)},
          {"same_queue_overhead_ns", number_or_null(found.same_queue_overhead_ns)},
          {"other_queue_overhead_ns", number_or_null(found.other_queue_overhead_ns)},
          {"unknown_queue_overhead_ns", number_or_null(found.unknown_queue_overhead_ns)}};
}

Json launch_bound_json(const LaunchBound& bound, const Timeline& part, const Words& words) {
  Json json = {{"gaps", bound.gaps},
               {"idle_ns", bound.idle_ns},
               {"host_gaps", bound.host_gaps},
               {"host_ns", bound.host_ns},
               {"launch_ns", bound.launch_ns},
               {"share_of_idle", bound.share_of_idle},
               {"calling_gaps", bound.calling_gaps},
               {"calling_ns", bound.calling_ns},
               {"calling_launch_ns", bound.calling_launch_ns},
               {"unknown_gaps", bound.unknown_gaps},
               {"unknown_ns", bound.unknown_ns},
               {"synchronizing_ns", number_or_null(bound.synchronizing_ns)},
               {"in_calls_ns", number_or_null(bound.in_calls_ns)},
               {"outside_ns", number_or_null(bound.outside_ns)}};
  json["longest"] = Json::array();
  for (const LaunchStall& stall : bound.longest)
    json["longest"].push_back({{"at_ns", words.at(stall.from_ns)},
                               {"idle_ns", stall.to_ns - stall.from_ns},
                               {"host_ns", stall.submitted_ns - stall.from_ns},
                               {"before", words.span(part, stall.span)},
                               {"call", words.call(part, stall.call)}});
  return json;
}

Json blocked_json(const HostBlocked& blocked, const Timeline& part, const Words& words) {
  const auto calls = [&](const BlockedCalls& found) {
    Json longest = Json::array();
    for (const BlockedCall& call : found.longest)
      longest.push_back({{"call", words.call(part, call.call)},
                         {"at_ns", call.call < part.calls.size() ? words.at(part.calls[call.call].started_ns) : Json()},
                         {"took_ns", call.took_ns},
                         {"backlog", call.backlog}});
    return Json{{"count", found.count}, {"total_ns", found.total_ns}, {"longest", std::move(longest)}};
  };
  return {{"launches", blocked.launches},         {"launch_p50_ns", blocked.launch_p50_ns},
          {"most_backlog", blocked.most_backlog}, {"queue_full", calls(blocked.queue_full)},
          {"slow", calls(blocked.slow)},          {"synchronize", calls(blocked.synchronize)},
          {"copies", calls(blocked.copies)}};
}

Json path_json(const CriticalPath& path, const Timeline& part, const Words& words, std::size_t top) {
  Json json = {{"span_ns", path.span_ns},         {"steps", path.steps}, {"commands", path.commands},
               {"queue_steps", path.queue_steps}, {"known", path.known}, {"in_calls_ns", path.in_calls_ns}};
  json["resources"] = Json::object();
  for (std::size_t i = 0; i < kPathResources; ++i)
    json["resources"][to_string(static_cast<PathResource>(i))] = {{"ns", path.ns[i]}, {"share", path.share[i]}};
  // A path that is mostly between commands names no cause.
  const double unexplained = path.share[static_cast<std::size_t>(PathResource::waiting)] +
                             path.share[static_cast<std::size_t>(PathResource::unknown)];
  json["caveat"] = unexplained > kMostUnexplained
                       ? Json(fmt::format("the path says little: {:.0f} % of it lies between commands that nothing in "
                                          "the source ties ({})",
                                          100 * unexplained, path.known))
                       : Json();
  const auto names = [&](const std::vector<PathName>& all) {
    Json list = Json::array();
    for (std::size_t i = 0; i < std::min(top, all.size()); ++i)
      list.push_back({{"name", words.name(all[i].name)},
                      {"resource", to_string(all[i].resource)},
                      {"steps", all[i].steps},
                      {"total_ns", all[i].total_ns}});
    return list;
  };
  json["names"] = names(path.names);
  json["calls"] = names(path.calls);
  json["longest"] = Json::array();
  for (const PathStep& step : path.longest)
    json["longest"].push_back({{"resource", to_string(step.resource)},
                               {"at_ns", words.at(step.from_ns)},
                               {"took_ns", step.to_ns - step.from_ns},
                               {"command", words.span(part, step.span)},
                               {"call", words.call(part, step.call)}});
  return json;
}

Json collectives_json(const Collectives& found, const Words& words) {
  Json json = {{"count", found.count}, {"total_ns", found.total_ns}};
  json["classes"] = Json::array();
  for (const CollectiveClass& each : found.classes)
    json["classes"].push_back({{"kind", to_string(each.kind)},
                               {"group", words.name(each.group)},
                               {"ranks", each.ranks > 0 ? Json(each.ranks) : Json()},
                               {"from_bytes", each.from_bytes ? Json(*each.from_bytes) : Json()},
                               {"count", each.count},
                               {"total_ns", each.total_ns},
                               {"p50_ns", each.p50_ns},
                               {"p99_ns", each.p99_ns},
                               {"bytes", number_or_null(each.bytes)},
                               {"algorithm_bandwidth", number_or_null(each.algorithm_bandwidth)},
                               {"bus_bandwidth", number_or_null(each.bus_bandwidth)}});
  return json;
}

Json slowdown_json(const OverlapSlowdown& found, const Words& words, std::size_t top) {
  Json json = {{"ratio", number_or_null(found.ratio)},
               {"names", found.names},
               {"clear", found.clear},
               {"beside_ns", found.beside_ns},
               {"cost_ns", found.cost_ns},
               {"partly", found.partly},
               {"too_few", found.too_few}};
  json["kernels"] = Json::array();
  for (std::size_t i = 0; i < std::min(top, found.kernels.size()); ++i) {
    const KernelSlowdown& kernel = found.kernels[i];
    json["kernels"].push_back({{"name", words.name(kernel.name)},
                               {"alone", kernel.alone},
                               {"beside", kernel.beside},
                               {"alone_p50_ns", kernel.alone_p50_ns},
                               {"beside_p50_ns", kernel.beside_p50_ns},
                               {"ratio", kernel.ratio},
                               {"p", kernel.p},
                               {"is_clear", kernel.is_clear},
                               {"cost_ns", kernel.cost_ns}});
  }
  return json;
}

Json gaps_json(const std::optional<IdleGaps>& found, const Timeline& part, const Words& words) {
  if (!found) return Json();
  Json json = {{"count", found->count},   {"total_ns", found->total_ns}, {"mean_ns", found->mean_ns},
               {"p50_ns", found->p50_ns}, {"p95_ns", found->p95_ns},     {"p99_ns", found->p99_ns},
               {"max_ns", found->max_ns}};
  json["histogram"] = Json::array();
  for (const GapBin& bin : found->histogram)
    json["histogram"].push_back({{"from_ns", bin.from_ns}, {"count", bin.count}, {"total_ns", bin.total_ns}});
  json["longest"] = Json::array();
  for (const LongGap& gap : found->longest)
    json["longest"].push_back({{"at_ns", words.at(gap.from_ns)},
                               {"took_ns", gap.to_ns - gap.from_ns},
                               {"before", words.span(part, gap.before)},
                               {"after", words.span(part, gap.after)}});
  return json;
}

Json top_json(const TopKernels& found, const Words& words) {
  Json json = {{"kernels", found.kernels},
               {"commands", found.commands},
               {"total_ns", found.total_ns},
               {"rest_count", found.rest_count},
               {"rest_ns", found.rest_ns}};
  json["top"] = Json::array();
  for (const KernelUse& use : found.top)
    json["top"].push_back({{"name", words.name(use.name)},
                           {"kind", to_string(use.kind)},
                           {"count", use.count},
                           {"total_ns", use.total_ns},
                           {"mean_ns", use.mean_ns},
                           {"p50_ns", use.p50_ns},
                           {"p99_ns", use.p99_ns},
                           {"min_ns", use.min_ns},
                           {"max_ns", use.max_ns},
                           {"share", use.share}});
  return json;
}

Json iterations_json(const Breakdown& found, const Words& words) {
  Json json = {{"count", found.iteration_count}, {"outside", found.outside_iterations}};
  json["list"] = Json::array();
  for (const IterationTimes& iteration : found.iterations)
    json["list"].push_back({{"number", iteration.number},
                            {"name", words.name(iteration.name)},
                            {"commands", iteration.commands},
                            {"overlap_efficiency", iteration.times ? efficiency_json(*iteration.times) : Json()},
                            {"times", iteration.times ? times_json(*iteration.times, words) : Json()}});
  return json;
}

}  // namespace

Json waterfall_json(const Timeline& timeline) {
  const Waterfall found = waterfall(timeline);
  if (found.classes.empty()) return Json();
  Json classes = Json::array();
  for (const ClassWaterfall& each : found.classes) {
    Json hops = Json::array();
    for (const Hop& hop : each.hops)
      hops.push_back({{"from", to_string(hop.from)},
                      {"to", to_string(hop.to)},
                      {"count", hop.count},
                      {"negative", hop.negative},
                      {"worst_negative_ns", hop.worst_negative_ns},
                      {"unknown", hop.unknown},
                      {"mean_ns", hop.count > 0 ? Json(hop.mean_ns) : Json()},
                      {"p50_ns", hop.count > 0 ? Json(hop.p50_ns) : Json()},
                      {"p95_ns", hop.count > 0 ? Json(hop.p95_ns) : Json()},
                      {"p99_ns", hop.count > 0 ? Json(hop.p99_ns) : Json()},
                      {"share", hop.share}});
    Json missing = Json::object();
    for (const MissingStage& stage : each.missing) missing[to_string(stage.stage)] = stage.reason;
    classes.push_back({{"kind", to_string(each.kind)},
                       {"commands", each.commands},
                       {"way_ns", each.way_ns},
                       {"hops", std::move(hops)},
                       {"missing", std::move(missing)},
                       {"dominating", each.dominating ? Json(*each.dominating) : Json()},
                       {"dominating_to_end", each.dominating_to_end ? Json(*each.dominating_to_end) : Json()},
                       {"words", each.words},
                       {"words_to_end", each.words_to_end}});
  }
  return {{"classes", std::move(classes)}};
}

Json analyze_device(const Timeline& whole, std::uint16_t device, std::int64_t origin_ns,
                    std::span<const LastArrival> arrivals, const AnalyzeOptions& options) {
  const Words words{whole, origin_ns};
  const Timeline part = slice(whole, device);
  const TraceDevice& facts = whole.devices[device];
  Json unavailable = Json::object();
  // A value, or null and its reason.
  const auto value_or = [&](const char* name, const std::string& reason, auto&& value) {
    if (reason.empty()) return Json(value());
    unavailable[name] = reason;
    return Json();
  };

  Json json;
  json["rank"] = whole.processes[facts.process].rank;
  json["id"] = facts.id;
  json["label"] = facts.label;
  const std::vector<TraceRange> iterations = iteration_ranges(whole, facts.process);
  const Breakdown times = breakdown(part, iterations);
  json["commands"] = times.commands;
  json["streams"] = times.streams;
  json["queues"] = times.queues > 0 ? Json(times.queues) : Json();
  json["copy_queues"] = times.copy_queues > 0 ? Json(times.copy_queues) : Json();
  if (times.queues == 0) unavailable["queues"] = "the source names no hardware queues";
  json["times"] = times.times ? times_json(*times.times, words) : Json();
  if (!times.times) unavailable["times"] = times.reason;
  json["kinds"] = Json::object();
  for (const SpanKind kind : kKinds) {
    const KindTotal& total = times.kinds[static_cast<std::size_t>(kind)];
    if (total.commands > 0) json["kinds"][to_string(kind)] = {{"commands", total.commands}, {"sum_ns", total.sum_ns}};
  }
  json["iterations"] = times.iteration_count > 0 ? iterations_json(times, words) : Json();
  if (times.iteration_count == 0) unavailable["iterations"] = "the source marks no iterations";

  const ConcurrencyProfile profile = concurrency_profile(part);
  json["concurrency"] = {{"all", levels_json(profile.all)}, {"kernels", levels_json(profile.kernels)}};

  LaneUses lanes = lane_use(part);
  std::size_t streams_left_out = 0, queues_left_out = 0;
  json["lanes"] = {{"bucket_ns", lanes.bucket_ns},
                   {"backlog", backlog_json(lanes.device, words, true)},
                   {"streams", lanes_json(lanes.streams, words, false, &streams_left_out)},
                   {"queues", lanes_json(lanes.queues, words, true, &queues_left_out)},
                   {"streams_left_out", streams_left_out},
                   {"queues_left_out", queues_left_out}};
  if (!lanes.device)
    unavailable["lanes.backlog"] = lanes.reason.empty() ? "no command has a time of submission" : lanes.reason;

  const QueueMap map = queue_map(part);
  json["queue_map"] =
      value_or("queue_map", map.queues.empty() ? map.reason : "", [&] { return queue_map_json(map, words); });
  const FalseSerialisation serial = false_serialisation(part);
  json["false_serialisation"] =
      value_or("false_serialisation", serial.reason, [&] { return serialisation_json(serial, words); });
  const QueueSwitch switches = queue_switch(part);
  json["queue_switch"] = value_or("queue_switch", switches.reason, [&] { return switch_json(switches); });

  const HostStalls stalls = host_stalls(part);
  json["launch_bound"] = value_or("launch_bound", stalls.launch_bound ? "" : stalls.launch_bound_reason,
                                  [&] { return launch_bound_json(*stalls.launch_bound, part, words); });
  json["host_blocked"] = value_or("host_blocked", stalls.blocked ? "" : stalls.blocked_reason,
                                  [&] { return blocked_json(*stalls.blocked, part, words); });
  const std::optional<CriticalPath> path = critical_path(part);
  json["critical_path"] = value_or("critical_path", path ? "" : "no command has times",
                                   [&] { return path_json(*path, part, words, options.top); });
  const Collectives found = collectives(part);
  json["collectives"] =
      value_or("collectives", found.count == 0 ? found.reason : "", [&] { return collectives_json(found, words); });
  if (found.count > 0 && !found.reason.empty()) unavailable["collectives.bandwidth"] = found.reason;
  const bool communicates = times.times && times.times->communication_ns > 0;
  json["overlap"] = value_or("overlap", communicates ? "" : "no communication", [&] { return overlap_json(part); });
  const bool is_exposed = times.times && times.times->alone_communication_ns > 0;
  json["exposed_causes"] =
      value_or("exposed_causes",
               is_exposed     ? ""
               : communicates ? "no communication was exposed: something else always ran"
                              : "no communication",
               [&] { return exposed_causes_json(exposed_causes(part, arrivals, iterations), part, words); });
  const OverlapSlowdown slowdown = overlap_slowdown(part);
  json["overlap_slowdown"] = value_or("overlap_slowdown", slowdown.ratio ? "" : slowdown.reason,
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
