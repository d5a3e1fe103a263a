#include "lab/queues/fairness_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/named_values.h"
#include "lab/queues/stamps.h"
#include "measure/statistics.h"

namespace weir {

Service service_of(std::span<const std::vector<Moment>> blocks_by_stream) {
  std::int64_t from_ns = INT64_MAX, to_ns = INT64_MAX;
  for (const std::vector<Moment>& blocks : blocks_by_stream) {
    std::int64_t last_ns = INT64_MIN;
    for (const Moment& block : blocks) {
      if (block.started_ns == 0 || block.ended_ns == 0) return {};
      from_ns = std::min(from_ns, block.started_ns);
      last_ns = std::max(last_ns, block.ended_ns);
    }
    to_ns = std::min(to_ns, last_ns);
  }
  if (from_ns >= to_ns || to_ns == INT64_MAX) return {};
  Service service;
  service.window_ns = static_cast<double>(to_ns - from_ns);
  for (const std::vector<Moment>& blocks : blocks_by_stream) {
    std::int64_t served_ns = 0;
    for (const Moment& block : blocks)
      served_ns += std::max<std::int64_t>(0, std::min(block.ended_ns, to_ns) - block.started_ns);
    service.ns.push_back(static_cast<double>(served_ns));
  }
  return service;
}

std::vector<StreamService> shares_of(std::span<const double> service_ns) {
  std::vector<StreamService> streams(service_ns.size());
  const double fair = mean(service_ns);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].share = fair > 0 ? service_ns[i] / fair : 0;
    streams[i].is_starved = streams[i].share < kStarvedShare;
  }
  return streams;
}

FairnessProbe measure_fairness(Device& device, const FairnessRequest& request) {
  const DeviceInfo info = device.info();
  const auto streams = static_cast<std::uint32_t>(request.streams);
  FairnessProbe probe;
  const ConcurrentBlocks room = count_concurrent_blocks(device);
  probe.blocks_at_once = room.blocks;
  if (room.is_more) {
    probe.jain.reason = fmt::format("{} blocks ran at once, so nothing was found that fills the device", room.blocks);
    return probe;
  }
  // With one command each, all streams together need twice the device's capacity, so none gets all it wants.
  const auto at_once = static_cast<std::uint32_t>(room.blocks);
  const std::uint32_t blocks = (2 * at_once + streams - 1) / streams;
  const std::uint32_t commands =
      std::clamp<std::uint32_t>(static_cast<std::uint32_t>(request.max_commands) / streams, 4, 32);
  probe.blocks_per_command = static_cast<int>(blocks);
  probe.commands_per_stream = static_cast<int>(commands);
  const int levels = info.highest_priority - info.lowest_priority + 1;
  const auto priority_of = [&](std::uint32_t stream) {
    return request.has_mixed_priorities ? info.lowest_priority + static_cast<int>(stream) % levels : 0;
  };

  const std::uint32_t moments = 1 + streams * commands * blocks;
  const auto first_moment = [&](std::uint32_t stream, std::uint32_t command) {
    return 1 + (stream * commands + command) * blocks;
  };
  StampStep step(1, moments);
  step.hold({.stream = static_cast<StreamId>(streams)}, 0, 0, moments);
  for (std::uint32_t command = 0; command < commands; ++command)
    for (std::uint32_t stream = 0; stream < streams; ++stream)
      step.stamp({.stream = static_cast<StreamId>(stream), .priority = static_cast<std::int8_t>(priority_of(stream))},
                 request.block_ns, first_moment(stream, command), blocks);
  StampSession session(device, std::move(step), request.streams + 1);

  std::vector<double> sums(streams, 0.0), windows;
  for (int i = 0; i <= request.repetitions; ++i) {
    session.begin();
    session.submit_all();
    if (session.moment(0).ended_ns != 0) probe.was_queued_ahead = false;
    session.release(0);
    session.finish();
    if (i == 0) continue;  // warm-up
    std::vector<std::vector<Moment>> by_stream;
    for (std::uint32_t stream = 0; stream < streams; ++stream)
      by_stream.push_back(session.moments(first_moment(stream, 0), commands * blocks));
    const Service service = service_of(by_stream);
    const auto jain = jain_index(service.ns);
    if (!jain) continue;
    probe.jain_by_run.push_back(*jain);
    windows.push_back(service.window_ns);
    const std::vector<StreamService> shares = shares_of(service.ns);
    for (std::uint32_t stream = 0; stream < streams; ++stream) sums[stream] += shares[stream].share;
  }
  if (probe.jain_by_run.empty()) {
    probe.jain.reason = "the kernels left no moments";
    return probe;
  }
  probe.streams = shares_of(sums);
  for (std::uint32_t stream = 0; stream < streams; ++stream) probe.streams[stream].priority = priority_of(stream);
  probe.window_ns = median(windows);
  probe.jain = {jain_index(sums), "by experiment"};
  return probe;
}

Json to_json(const FairnessProbe& probe) {
  Json json;
  json["jain"] = number_or_null(probe.jain.value);
  json["jain_by_run"] = probe.jain_by_run;
  const auto less = [](const StreamService& a, const StreamService& b) { return a.share < b.share; };
  const auto [least, most] = std::minmax_element(probe.streams.begin(), probe.streams.end(), less);
  const bool has_shares = least != probe.streams.end();
  json["least_share"] = has_shares ? Json(least->share) : Json();
  json["largest_share"] = has_shares ? Json(most->share) : Json();
  json["window_ns"] = has_shares ? Json(probe.window_ns) : Json();
  json.update(
      WEIR_NAMED(probe.blocks_at_once, probe.blocks_per_command, probe.commands_per_stream, probe.was_queued_ahead));
  json["starved"] = Json::array();
  json["streams"] = Json::array();
  std::map<int, std::pair<double, int>> by_priority;  // sum of shares, streams
  for (std::size_t i = 0; i < probe.streams.size(); ++i) {
    const StreamService& stream = probe.streams[i];
    json["streams"].push_back({{"stream", i}, {"priority", stream.priority}, {"share", stream.share}});
    if (stream.is_starved) json["starved"].push_back(i);
    by_priority[stream.priority].first += stream.share;
    ++by_priority[stream.priority].second;
  }
  json["by_priority"] = Json::array();
  for (const auto& [priority, sum] : by_priority)
    json["by_priority"].push_back(
        {{"priority", priority}, {"streams", sum.second}, {"mean_share", sum.first / sum.second}});
  return json;
}

Json measure_fairness_document(Device& device, const FairnessRequest& request, const RunContext& context) {
  const DeviceInfo info = device.info();
  Json document = queues_document("fairness", info, context);
  const FairnessProbe probe = measure_fairness(device, request);
  Json& fairness = document["fairness"] = to_json(probe);
  fairness["priorities"] = request.has_mixed_priorities ? "mixed" : "same";
  fairness.update(WEIR_NAMED(request.block_ns, request.repetitions));
  if (!probe.jain.value) document["unavailable"]["fairness.jain"] = probe.jain.reason;
  if (!fairness["starved"].empty())
    warn(document, "starvation",
         fmt::format("{} of {} streams got less than {:.0f} % of a fair share", fairness["starved"].size(),
                     request.streams, 100 * kStarvedShare),
         request.has_mixed_priorities ? "Priorities are strict here: work of low priority waits for all other."
                                      : "Use fewer streams, or as many hardware queues as streams.");
  if (!probe.was_queued_ahead)
    warn(document, "host_late", "the streams could not be filled ahead; shares may be the host's",
         "Use fewer --streams.");
  return document;
}

}  // namespace weir
