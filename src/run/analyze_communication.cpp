// The part of the `analyze` document about the communication of a device: collectives, their overlap with compute, what
// exposed them, and what they cost compute.
#include <algorithm>
#include <vector>

#include "base/named_values.h"
#include "run/analyze_device.h"
#include "trace/analyse/collectives.h"
#include "trace/analyse/exposed_causes.h"
#include "trace/analyse/overlap_slowdown.h"
#include "trace/analyse/overlap_times.h"

namespace weir {

Json collectives_json(const Collectives& found, const AnalysisWords& words) {
  Json json = WEIR_NAMED(found.count, found.total_ns);
  json["classes"] = json_list(found.classes, [&](const CollectiveClass& each) {
    const Json duration_ns = {{"p50", each.p50_ns}, {"p99", each.p99_ns}};
    return WEIR_NAMED(
        to_string(each.kind), words.name(each.group), positive_or_null(each.ranks), each.from_bytes, each.count,
        each.total_ns, duration_ns, each.bytes, named("algorithm_bytes_per_s", each.algorithm_bandwidth),
        named("bus_bytes_per_s", each.bus_bandwidth), named("best_bus_bytes_per_s", each.best_bus_bandwidth));
  });
  return json;
}

Json slowdown_json(const OverlapSlowdown& found, const AnalysisWords& words, std::size_t top) {
  Json json =
      WEIR_NAMED(found.ratio, found.names, found.clear, found.beside_ns, found.cost_ns, found.partly, found.too_few);
  json["kernels"] = json_list(first_of(found.kernels, top), [&](const KernelSlowdown& kernel) {
    return WEIR_NAMED(words.name(kernel.name), kernel.alone, kernel.beside,
                      named("alone_ns", Json{{"p50", kernel.alone_p50_ns}}),
                      named("beside_ns", Json{{"p50", kernel.beside_p50_ns}}), kernel.ratio, kernel.p, kernel.is_clear,
                      kernel.cost_ns);
  });
  return json;
}

Json overlap_efficiency_json(const BusyTimes& times) {
  if (times.communication_ns <= 0) return Json();
  return times.hidden_communication_ns / times.communication_ns;
}

Json overlap_json(const Timeline& part) {
  const OverlapFound found = overlap_times(part);
  if (!found.whole) return Json();
  const OverlapTimes& whole = *found.whole;
  Json kinds = Json::object();
  for (std::size_t i = 0; i < kCollectiveKinds; ++i)
    if (whole.collective_ns[i] > 0) kinds[to_string(static_cast<CollectiveKind>(i))] = whole.collective_ns[i];
  return WEIR_NAMED(whole.times.communication_ns, whole.hidden_ns(), whole.exposed_ns(),
                    named("efficiency", overlap_efficiency_json(whole.times)), named("collective_ns", std::move(kinds)),
                    whole.communication_sum_ns, whole.compute_sum_ns);
}

Json exposed_causes_json(const ExposedCauses& found, const Timeline& part, const AnalysisWords& words) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < kExposedCauses; ++i)
    if (found.causes[i].stretches > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return found.causes[a].total_ns > found.causes[b].total_ns; });
  Json causes = json_list(order, [&](std::size_t i) -> Json {
    const CauseTotal& total = found.causes[i];
    const auto cause = static_cast<ExposedCause>(i);
    Json worst = json_list(total.worst, [&](const ExposedStretch& stretch) -> Json {
      return {{"at_ns", words.at(stretch.from_ns)},
              {"took_ns", stretch.to_ns - stretch.from_ns},
              {"iteration", stretch.iteration},
              {"collective", words.span(part, stretch.collective)},
              {"blocked", words.span(part, stretch.blocked)},
              {"blocker", words.span(part, stretch.blocker)},
              {"queue", stretch.queue == kNoQueue ? Json() : words.queue(stretch.queue)}};
    });
    return WEIR_NAMED(to_string(cause), total.total_ns, named("share", total.total_ns / found.exposed_ns),
                      total.stretches, named("meaning", meaning_of(cause)), named("advice", advice_of(cause)),
                      std::move(worst));
  });
  Json json = WEIR_NAMED(found.exposed_ns, found.are_submissions_known, found.are_dependencies_known);
  json.update(WEIR_NAMED(text_or_null(found.reason), std::move(causes)));
  return json;
}

}  // namespace weir
