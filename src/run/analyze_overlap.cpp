#include "run/analyze_overlap.h"

#include <algorithm>
#include <vector>

#include "trace/analyse/overlap_times.h"
#include "trace/kinds.h"

namespace weir {

Json efficiency_json(const BusyTimes& times) {
  if (times.communication_ns <= 0) return Json();
  return (times.communication_ns - times.alone_communication_ns) / times.communication_ns;
}

Json overlap_json(const Timeline& part) {
  const OverlapFound found = overlap_times(part);
  if (!found.whole) return Json();
  const OverlapTimes& whole = *found.whole;
  Json kinds = Json::object();
  for (std::size_t i = 0; i < kCollectiveKinds; ++i)
    if (whole.collective_ns[i] > 0) kinds[to_string(static_cast<CollectiveKind>(i))] = whole.collective_ns[i];
  return {{"communication_ns", whole.times.communication_ns},
          {"hidden_ns", whole.hidden_ns()},
          {"exposed_ns", whole.exposed_ns()},
          {"efficiency", efficiency_json(whole.times)},
          {"collective_ns", std::move(kinds)},
          {"communication_sum_ns", whole.communication_sum_ns},
          {"compute_sum_ns", whole.compute_sum_ns}};
}

Json exposed_causes_json(const ExposedCauses& found, const Timeline& part, const TimelineWords& words) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kExposedCauses; ++i)
    if (found.causes[i].stretches > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.causes[a].total_ns > found.causes[b].total_ns; });
  Json causes = Json::array();
  for (const std::size_t i : order) {
    const CauseTotal& total = found.causes[i];
    const auto cause = static_cast<ExposedCause>(i);
    Json worst = Json::array();
    for (const ExposedStretch& stretch : total.worst)
      worst.push_back({{"at_ns", words.at(stretch.from_ns)},
                       {"took_ns", stretch.to_ns - stretch.from_ns},
                       {"iteration", stretch.iteration},
                       {"collective", words.span(part, stretch.collective)},
                       {"blocked", words.span(part, stretch.blocked)},
                       {"blocker", words.span(part, stretch.blocker)},
                       {"queue", stretch.queue == kNoQueue ? Json() : words.queue(stretch.queue)}});
    causes.push_back({{"cause", to_string(cause)},
                      {"total_ns", total.total_ns},
                      {"share", total.total_ns / found.exposed_ns},
                      {"stretches", total.stretches},
                      {"meaning", meaning_of(cause)},
                      {"advice", advice_of(cause)},
                      {"worst", std::move(worst)}});
  }
  return {{"exposed_ns", found.exposed_ns},
          {"are_submissions_known", found.are_submissions_known},
          {"are_dependencies_known", found.are_dependencies_known},
          {"reason", found.reason.empty() ? Json() : Json(found.reason)},
          {"causes", std::move(causes)}};
}

}  // namespace weir
