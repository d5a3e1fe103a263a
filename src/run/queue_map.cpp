#include "run/queue_map.h"

#include <algorithm>

namespace weir {
namespace {

constexpr int kFewestProbed = 40;  // enough for the 32 queues that a CUDA process can have at most

}  // namespace

int probed_streams(int streams) { return std::max(streams, kFewestProbed); }

Json to_json(const QueueProbe& probe) {
  const ProbeBaseline& base = probe.baseline;
  Json json = Json::object();
  json["policy"] = name_of(probe.policy);
  json["mapping"] = in_words(probe.policy);
  json["is_static"] = is_static(probe.policy);
  json["queues"] = probe.queues ? Json(*probe.queues) : Json(nullptr);
  json["is_lower_bound"] = probe.is_lower_bound;
  json["reason"] = probe.reason;
  json["record_blocks"] = probe.record_blocks ? Json(*probe.record_blocks) : Json(nullptr);
  json["streams"] = probe.streams;
  json["queue_of_stream"] = probe.queue_of_stream.empty() ? Json(nullptr) : Json(probe.queue_of_stream);
  json["saturation"] = Json::array();
  std::vector<QueueProbe::Saturation> curve = probe.saturation;
  std::stable_sort(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.held < b.held; });
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (i > 0 && curve[i].held == curve[i - 1].held) {
      Json& last = json["saturation"].back();
      last["stuck"] = last["stuck"].get<int>() + curve[i].stuck;
      last["marked"] = last["marked"].get<int>() + curve[i].marked;
      continue;
    }
    json["saturation"].push_back({{"held", curve[i].held}, {"stuck", curve[i].stuck}, {"marked", curve[i].marked}});
  }
  json["confidence"] = probe.confidence;
  json["repetitions"] = base.repetitions;
  json["trials"] = probe.trials;
  json["spoilt_trials"] = probe.spoilt;
  json["elapsed_ns"] = probe.elapsed_ns;
  json["baseline"] = {{"marks", base.marks},
                      {"late", base.late},
                      {"stretched", base.stretched},
                      {"median_ns", base.median_ns},
                      {"window_ns", base.window_ns},
                      {"late_probability", base.late_probability},
                      {"granularity_ns", base.granularity_ns}};
  return json;
}

Json map_queues(Device& device, const MapRequest& request, const RunContext& context, const RunControl& control) {
  Json document = queues_document("map", device.info(), context);
  ProbeOptions options;
  options.streams = probed_streams(request.streams);
  options.confidence = request.confidence;
  options.stop = control.stop;
  options.progress = control.progress;
  const QueueProbe probe = probe_queues(device, options);
  Json map = Json::object();
  map["streams"] = request.streams;
  map["probe"] = to_json(probe);
  document["map"] = std::move(map);
  return document;
}

}  // namespace weir
