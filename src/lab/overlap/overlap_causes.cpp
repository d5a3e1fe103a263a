// Explains why communication was exposed, over all ranks, as a document. Knows timelines; runs nothing.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/named_values.h"
#include "lab/overlap/overlap_summary.h"
#include "trace/analyse/exposed_causes.h"

namespace weir {
namespace {

constexpr std::size_t kMaxListedStretches = 3;

using Key = std::pair<std::uint32_t, std::uint32_t>;  // command and iteration

std::map<Key, std::pair<std::int64_t, int>> last_of_all(const std::vector<const Timeline*>& timelines) {
  std::map<Key, std::pair<std::int64_t, int>> last;
  for (std::size_t rank = 0; rank < timelines.size(); ++rank)
    for (const Span& span : timelines[rank]->spans) {
      if (span.kind != SpanKind::collective || span.started_ns == kNoTime) continue;
      const auto [at, is_new] =
          last.try_emplace({span.command, span.iteration}, span.started_ns, static_cast<int>(rank));
      if (!is_new && span.started_ns > at->second.first) at->second = {span.started_ns, static_cast<int>(rank)};
    }
  return last;
}

Json name_json(const Timeline& timeline, std::uint32_t span) {
  if (span >= timeline.spans.size() || timeline.spans[span].name >= timeline.names.size()) return nullptr;
  return timeline.names[timeline.spans[span].name];
}

struct Total {
  double ns = 0;
  std::size_t stretches = 0;
  std::vector<Json> worst;
  std::set<std::int32_t> queues;
};

}  // namespace

std::vector<RankCauses> causes_by_rank(const std::vector<const Timeline*>& timelines) {
  const auto last = last_of_all(timelines);
  std::vector<RankCauses> ranks;
  for (const Timeline* const timeline : timelines) {
    std::vector<LastArrival> arrivals;
    std::set<std::uint32_t> iterations;
    for (std::uint32_t i = 0; i < timeline->spans.size(); ++i) {
      const Span& span = timeline->spans[i];
      iterations.insert(span.iteration);
      if (timelines.size() < 2 || span.kind != SpanKind::collective || span.started_ns == kNoTime) continue;
      const auto& [arrived_ns, who] = last.at({span.command, span.iteration});
      arrivals.push_back({i, arrived_ns, who});
    }
    ranks.push_back({exposed_causes(*timeline, arrivals), iterations.size()});
  }
  return ranks;
}

Json causes_json(const std::vector<const Timeline*>& timelines, const std::vector<RankCauses>& ranks) {
  std::array<Total, kExposedCauses> totals;
  double steps = 0, exposed_ns = 0;
  for (std::size_t rank = 0; rank < timelines.size(); ++rank) {
    const Timeline& timeline = *timelines[rank];
    const ExposedCauses& found = ranks[rank].found;
    steps += static_cast<double>(ranks[rank].iterations);
    exposed_ns += found.exposed_ns;
    for (std::size_t cause = 0; cause < kExposedCauses; ++cause) {
      Total& total = totals[cause];
      total.ns += found.causes[cause].total_ns;
      total.stretches += found.causes[cause].stretches;
      for (const ExposedStretch& stretch : found.causes[cause].worst) {
        if (stretch.queue != kNoQueue) total.queues.insert(stretch.queue);
        total.worst.push_back({{"rank", rank},
                               {"iteration", stretch.iteration},
                               {"from_ns", stretch.from_ns},
                               {"ns", stretch.to_ns - stretch.from_ns},
                               {"collective", name_json(timeline, stretch.collective)},
                               {"blocked", name_json(timeline, stretch.blocked)},
                               {"blocker", name_json(timeline, stretch.blocker)},
                               {"queue", stretch.queue == kNoQueue ? Json(nullptr) : Json(stretch.queue)}});
      }
    }
  }
  Json causes = Json::array();
  for (std::size_t i = 0; i < kExposedCauses; ++i) {
    Total& total = totals[i];
    if (total.ns <= 0) continue;
    std::sort(total.worst.begin(), total.worst.end(),
              [](const Json& a, const Json& b) { return a["ns"].get<std::int64_t>() > b["ns"].get<std::int64_t>(); });
    if (total.worst.size() > kMaxListedStretches) total.worst.resize(kMaxListedStretches);
    const auto cause = static_cast<ExposedCause>(i);
    causes.push_back(WEIR_NAMED(to_string(cause), named("ns_per_step", total.ns / std::max(1.0, steps)),
                                named("share", total.ns / exposed_ns), total.stretches, total.queues,
                                named("meaning", meaning_of(cause)), named("advice", advice_of(cause)), total.worst));
  }
  std::sort(causes.begin(), causes.end(), [](const Json& a, const Json& b) {
    return a["ns_per_step"].get<double>() > b["ns_per_step"].get<double>();
  });
  return causes;
}

}  // namespace weir
