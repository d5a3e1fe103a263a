#include "lab/queues/queues_switch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/named_values.h"

namespace weir {
namespace {

constexpr double kMinShare = 0.01;

Json to_json(const Known<Gaps>& gaps) {
  if (!gaps.value) return {{"value", nullptr}, {"reason", gaps.reason}};
  return {{"value", {{"p50", gaps.value->p50_ns}, {"p90", gaps.value->p90_ns}, {"count", gaps.value->count}}},
          {"reason", nullptr}};
}

Json to_json(const std::optional<SwitchGap>& gap) {
  return gap ? Json{{"count", gap->count}, {"p50", gap->median_ns}} : Json();
}

Json to_json(const QueueSwitch& found) {
  return WEIR_NAMED(named("same_stream_ns", to_json(found.same_stream)),
                    named("same_queue_ns", to_json(found.same_queue)),
                    named("other_queue_ns", to_json(found.other_queue)),
                    named("unknown_queue_ns", to_json(found.unknown_queue)), found.same_queue_overhead_ns,
                    found.other_queue_overhead_ns, found.unknown_queue_overhead_ns, text_or_null(found.reason));
}

Json to_json(const SwitchCost& cost) {
  return WEIR_NAMED(cost.ns_per_hop, cost.hops, cost.repetitions, text_or_null(cost.reason));
}

Json to_json(const Known<Serialisation>& known) {
  if (!known.value) return {{"value", nullptr}, {"reason", known.reason}};
  const Serialisation& found = *known.value;
  return {{"value", WEIR_NAMED(found.kernels, found.makespan_ns, found.ideal_ns, found.lost_ns_per_kernel())},
          {"reason", nullptr}};
}

// The costs of each queue count, by stream count; settings without a number are left out.
std::map<int, std::vector<QueueCosts>> costs_by_streams(const Json& settings) {
  std::map<int, std::vector<QueueCosts>> costs;
  for (const Json& setting : settings) {
    if (!setting["hardware_queues"].is_number()) continue;
    for (const Json& row : setting["rows"]) {
      const Json& hops = row["hops_ns"]["value"];
      const Json& lost = row["serialisation"]["value"];
      if (hops.is_null() || lost.is_null()) continue;
      const double share = lost["lost_ns_per_kernel"].get<double>() / setting["parallel_ns"].get<double>();
      // One stream gains nothing from queues, and anything below a hundredth of a kernel is noise.
      if (row["streams"].get<int>() < 2) continue;
      costs[row["streams"].get<int>()].push_back(
          {setting["hardware_queues"].get<int>(), hops["p50"].get<double>(), share < kMinShare ? 0.0 : share});
    }
  }
  return costs;
}

void add_crossings(Json& document, double kernel_ns) {
  Json& found = document["switch"];
  found["kernel_ns"] = kernel_ns;
  Json& best = found["best"] = Json::array();
  for (const auto& [streams, costs] : costs_by_streams(found["settings"])) {
    if (costs.size() < 2) continue;
    const auto cheapest = std::min_element(costs.begin(), costs.end(), [&](const QueueCosts& a, const QueueCosts& b) {
      return a.cost_ns(kernel_ns) < b.cost_ns(kernel_ns);
    });
    Json ranges = json_list(best_ranges(costs), [](const BestRange& range) -> Json {
      return {{"hardware_queues", range.queues}, {"from_ns", range.from_ns}, {"to_ns", number_or_null(range.to_ns)}};
    });
    best.push_back(WEIR_NAMED(streams, named("hardware_queues", cheapest->queues),
                              named("ns_per_command", cheapest->cost_ns(kernel_ns)), ranges));
  }
  if (best.empty())
    document["unavailable"]["switch.best"] = "fewer than two queue counts were measured: give --hw-queues a list";
}

}  // namespace

Json to_json(const StreamSwitch& found) {
  return WEIR_NAMED(found.streams, found.was_queued_ahead, named("hops_ns", to_json(found.hops)),
                    named("graph_ns", to_json(found.graph)), named("within_queue_ns", to_json(found.within_queue)),
                    named("across_queues_ns", to_json(found.across_queues)), to_json(found.timeline),
                    to_json(found.controlled), to_json(found.serialisation));
}

Json measure_switch(Device& device, const SwitchSettings& settings, const RunContext& context) {
  const DeviceInfo info = device.info();
  Json document = queues_document("switch", info, context);
  Json setting;
  setting["hardware_queues"] = or_null(info.hardware_queues.value);
  if (!info.hardware_queues.value) document["unavailable"]["switch.hardware_queues"] = info.hardware_queues.reason;
  setting.update(WEIR_NAMED(settings.request.hops, settings.request.stamp_ns, settings.request.parallel_ns,
                            settings.request.depth, settings.request.repetitions));
  setting["rows"] = Json::array();
  int done = 0;
  for (const int streams : settings.streams) {
    if (settings.progress)
      settings.progress(fmt::format("{} streams", streams), done++, static_cast<int>(settings.streams.size()));
    setting["rows"].push_back(to_json(measure_switch_gaps(device, streams, settings.request)));
    if (!setting["rows"].back()["was_queued_ahead"].get<bool>())
      warn(document, "host_late",
           fmt::format("{} streams: the chain could not be queued ahead; gaps may be the host's", streams),
           info.is_virtual ? "Use fewer --hops, or deeper queues (--sim queue_depth=4096)." : "Use fewer --hops.");
  }
  document["switch"]["settings"] = Json::array({setting});
  add_crossings(document, settings.kernel_ns);
  return document;
}

Json merge_switch(std::span<const Json> documents, double kernel_ns, const RunContext& context) {
  if (documents.empty()) fail("no documents to merge");
  Json merged = documents[0];
  merged["command_line"] = context.command_line;
  std::vector<Json> settings;
  Json warnings = Json::array();
  for (const Json& document : documents) {
    if (!document.contains("switch") || !document["switch"].contains("settings"))
      reject("a document without the member 'switch' cannot be merged");
    for (const Json& setting : document["switch"]["settings"]) settings.push_back(setting);
    for (const Json& warning : document["warnings"]) warnings.push_back(warning);
    for (const auto& [name, why] : document["unavailable"].items()) merged["unavailable"][name] = why;
  }
  const auto queues = [](const Json& setting) {
    return setting["hardware_queues"].is_number() ? setting["hardware_queues"].get<int>() : 0;
  };
  std::stable_sort(settings.begin(), settings.end(),
                   [&](const Json& a, const Json& b) { return queues(a) < queues(b); });
  merged["switch"]["settings"] = settings;
  merged["warnings"] = warnings;
  merged["unavailable"].erase("switch.best");
  add_crossings(merged, kernel_ns);
  return merged;
}

// The lower envelope of straight lines over the duration, starting at 0.
std::vector<BestRange> best_ranges(std::span<const QueueCosts> costs) {
  std::vector<BestRange> ranges;
  if (costs.empty()) return ranges;
  const QueueCosts* best = &*std::min_element(costs.begin(), costs.end(), [](const QueueCosts& a, const QueueCosts& b) {
    return std::tie(a.hop_ns, a.lost_share, a.queues) < std::tie(b.hop_ns, b.lost_share, b.queues);
  });
  double from_ns = 0;
  for (;;) {
    const QueueCosts* next = nullptr;
    double next_ns = 0;
    for (const QueueCosts& other : costs) {
      if (other.lost_share >= best->lost_share) continue;
      const double crossing_ns = (other.hop_ns - best->hop_ns) / (best->lost_share - other.lost_share);
      // If several lines cross here, the one that loses least wins from here on.
      if (next == nullptr || crossing_ns < next_ns || (crossing_ns == next_ns && other.lost_share < next->lost_share)) {
        next = &other;
        next_ns = crossing_ns;
      }
    }
    if (next == nullptr) break;
    if (next_ns > from_ns) ranges.push_back({best->queues, from_ns, next_ns});
    from_ns = std::max(from_ns, next_ns);
    best = next;
  }
  ranges.push_back({best->queues, from_ns, std::nullopt});
  return ranges;
}

}  // namespace weir
