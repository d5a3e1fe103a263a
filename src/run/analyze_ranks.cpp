// The part of the `analyze` document about the phases of several ranks.
#include <algorithm>

#include "base/named_values.h"
#include "run/analyze.h"
#include "trace/analyse/rank_phases.h"
#include "trace/rank_collectives.h"
#include "trace/work_class.h"

namespace weir {

std::vector<RankOfPhases> ranks_of_phases(const Json& devices, const std::vector<std::uint16_t>& numbers,
                                          const RankCollectives& collectives) {
  std::vector<RankOfPhases> ranks;
  for (std::size_t i = 0; i < devices.size() && i < numbers.size(); ++i) {
    RankOfPhases rank;
    rank.device = numbers[i];
    if (devices[i]["iterations"].is_object()) rank.steps = devices[i]["iterations"]["count"].get<std::size_t>();
    if (devices[i]["data_loading"].is_object()) rank.loading_ns = devices[i]["data_loading"]["total_ns"].get<double>();
    const auto wait = std::find_if(collectives.ranks.begin(), collectives.ranks.end(),
                                   [&](const RankWait& each) { return each.device == rank.device; });
    if (wait != collectives.ranks.end()) rank.waiting_ns = wait->waiting_ns;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

Json rank_phases_json(const RankPhases& found, const Timeline& timeline, const std::vector<std::string>& names) {
  const auto name = [&](std::uint32_t number) { return number < names.size() ? Json(names[number]) : Json(); };
  const auto rank_of = [&](std::size_t place) -> Json {
    const TraceDevice& device = timeline.devices[found.ranks[place].device];
    return {{"rank", timeline.processes[device.process].rank}, {"device", device.label}};
  };
  Json json = {{"are_steps", found.are_steps}};
  json["ranks"] = Json::array();
  for (std::size_t i = 0; i < found.ranks.size(); ++i) {
    Json rank = rank_of(i);
    for (const SlowestRank& each : found.phases)
      rank[std::string(to_string(each.phase)) + "_ns"] = found.ranks[i].ns[static_cast<std::size_t>(each.phase)];
    json["ranks"].push_back(std::move(rank));
  }
  json["phases"] = json_list(found.phases, [&](const SlowestRank& each) -> Json {
    Json most;
    if (each.most)
      most = {{"operator", name(each.most->operator_name)},
              {"shapes", name(each.most->shapes)},
              {"name", name(each.most->name)},
              {"work", to_string(work_class_of(
                           each.most->kind, each.most->name < names.size() ? names[each.most->name] : std::string()))},
              {"more_ns", each.most->more_ns}};
    return {
        {"phase", to_string(each.phase)}, {"slowest", rank_of(each.slowest)},    {"against", rank_of(each.median)},
        {"slowest_ns", each.ns},          {"against_ns", each.median_ns},        {"reason", to_string(each.reason)},
        {"longer_ns", each.longer_ns},    {"more_work_ns", each.more_work_ns},   {"late_host_ns", each.late_host_ns},
        {"waiting_ns", each.waiting_ns},  {"ratio", number_or_null(each.ratio)}, {"most", std::move(most)}};
  });
  return json;
}

}  // namespace weir
