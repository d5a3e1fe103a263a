#include "lab/queues/queues_fairness.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weir {

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
  json["blocks_at_once"] = probe.blocks_at_once;
  json["blocks_per_command"] = probe.blocks_per_command;
  json["commands_per_stream"] = probe.commands_per_stream;
  json["was_queued_ahead"] = probe.was_queued_ahead;
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
  fairness["block_ns"] = request.block_ns;
  fairness["repetitions"] = request.repetitions;
  if (!probe.jain.value) document["unavailable"]["fairness.jain"] = probe.jain.reason;
  if (!fairness["starved"].empty())
    document["warnings"].push_back(
        {{"kind", "starvation"},
         {"text", fmt::format("{} of {} streams got less than {:.0f} % of a fair share", fairness["starved"].size(),
                              request.streams, 100 * kStarvedShare)},
         {"advice", request.has_mixed_priorities
                        ? "Priorities are strict here: work of low priority waits for all other."
                        : "Use fewer streams, or as many hardware queues as streams."}});
  if (!probe.was_queued_ahead)
    document["warnings"].push_back({{"kind", "host_late"},
                                    {"text", "the streams could not be filled ahead; shares may be the host's"},
                                    {"advice", "Use fewer --streams."}});
  return document;
}

}  // namespace weir
