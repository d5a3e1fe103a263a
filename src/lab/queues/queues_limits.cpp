// Runs all experiments of `weir queues limits` in a row and makes their document. Prints nothing.
#include <fmt/format.h>

#include "base/named_values.h"
#include "lab/queues/limits.h"
#include "lab/queues/queue_map.h"

namespace weir {
namespace {

// Records in the document why a member of "limits" has no value.
template <class T>
void explain(Json& document, const std::string& name, const Known<T>& known) {
  if (!known.value) document["unavailable"]["limits." + name] = known.reason;
}

}  // namespace

Json to_json(const QueueDepth& depth) {
  const Json at_least = depth.launches.value  ? Json(*depth.launches.value)
                        : depth.found.empty() ? Json(depth.tried)
                                              : Json();
  return WEIR_NAMED(depth.launches.value, at_least, depth.tried, named("repetitions", depth.found), depth.waited_ns);
}

Json to_json(const ResidentLimit& limit) {
  Json points = json_list(
      limit.points, [](const ResidentLimit::Point& point) { return WEIR_NAMED(point.kernels, point.makespan_ns); });
  return WEIR_NAMED(limit.kernels.value, limit.most_at_once, limit.is_in_graph, limit.tried, limit.duration_ns,
                    std::move(points));
}

Json to_json(const CopyOverlap& overlap) {
  Json json;
  json["engines_at_least"] = overlap.engines_at_least;
  json["alone"] = Json::array();
  for (const CopyOverlap::Alone& copy : overlap.alone)
    json["alone"].push_back(
        WEIR_NAMED(copy.direction, copy.size_bytes, copy.time_ns, copy.transfer_ns(), copy.bytes_per_s));
  json["together"] = Json::array();
  for (const CopyOverlap::Together& set : overlap.together) {
    Json directions = json_list(set.directions, [](CopyDirection direction) { return name_of(direction); });
    json["together"].push_back(WEIR_NAMED(directions, set.time_ns, set.overlap));
  }
  return json;
}

Json to_json(const PriorityLevels& levels) {
  Json json = WEIR_NAMED(levels.levels.value, levels.lowest, levels.highest, positive_or_null(levels.blocks_at_once),
                         positive_or_null(levels.victim_blocks));
  json["pairs"] = Json::array();
  for (const PriorityLevels::Pair& pair : levels.pairs)
    json["pairs"].push_back(WEIR_NAMED(pair.lower, pair.higher, pair.passed_equal, pair.passed_higher,
                                       named("differs", pair.differs.value)));
  return json;
}

Json measure_limits(Device& device, const LimitsRequest& request, const RunContext& context) {
  constexpr int kPhases = 5;
  const auto progress = [&](std::string_view phase, int done) {
    if (request.progress) request.progress(phase, done, kPhases);
  };
  const DeviceInfo info = device.info();
  Json document = queues_document("limits", info, context);
  Json& limits = document["limits"] = Json::object();

  progress("counting queues", 0);
  ProbeOptions options;
  options.streams = probed_streams(0);
  const QueueProbe probe = probe_queues(device, options);
  warn_about_others(document, device, probe);
  Known<int> queues{std::nullopt, probe.reason};
  if (probe.queues && probe.is_lower_bound) {
    queues.reason = fmt::format("at least {}: {}", *probe.queues, probe.reason);
  } else if (probe.queues) {
    queues = {probe.queues, "by experiment"};
  }
  limits["hardware_queues"] = {{"value", or_null(queues.value)}, {"told", or_null(info.hardware_queues.value)}};
  explain(document, "hardware_queues", queues);
  if (!info.hardware_queues.value) document["unavailable"]["limits.hardware_queues.told"] = info.hardware_queues.reason;

  progress("filling a queue", 1);
  const QueueDepth depth = measure_queue_depth(device, request.launches);
  limits["queue_depth"] = to_json(depth);
  explain(document, "queue_depth", depth.launches);

  progress("resident kernels", 2);
  const ResidentLimit resident = measure_resident_limit(
      device, request.streams, probe.barrier == true && !probe.is_lower_bound ? probe.queues : std::nullopt);
  limits["resident_kernels"] = to_json(resident);
  explain(document, "resident_kernels", resident.kernels);

  progress("copies", 3);
  const CopyOverlap copies = measure_copy_overlap(device, request.copy_bytes);
  limits["copies"] = to_json(copies);
  if (!copies.reason.empty()) document["unavailable"]["limits.copies"] = copies.reason;
  for (const CopyOverlap::Alone& copy : copies.alone)
    if (!copy.bytes_per_s)
      document["unavailable"][fmt::format("limits.copies.{}", name_of(copy.direction))] =
          "copies of twice the size took no longer";
  for (std::size_t i = 0; i < copies.together.size(); ++i)
    if (!copies.together[i].overlap)
      document["unavailable"][fmt::format("limits.copies.together.{}.overlap", i)] =
          "latency and gaps take more of these copies than their bytes do";
  limits["copies"]["engines_told"] = or_null(info.copy_engines.value);
  if (!info.copy_engines.value) document["unavailable"]["limits.copies.engines_told"] = info.copy_engines.reason;

  progress("priorities", 4);
  const PriorityLevels priorities = measure_priority_levels(device);
  limits["priorities"] = to_json(priorities);
  explain(document, "priorities", priorities.levels);
  for (const PriorityLevels::Pair& pair : priorities.pairs)
    if (!pair.differs.value)
      document["unavailable"][fmt::format("limits.priorities.{}_{}", pair.lower, pair.higher)] = pair.differs.reason;
  return document;
}

}  // namespace weir
