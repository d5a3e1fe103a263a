#include "trace/analyse/last_arrivals.h"

#include "trace/collective_match.h"

namespace weir {

std::vector<std::vector<LastArrival>> last_arrivals(const Timeline& aligned,
                                                    const std::optional<ClockAlignment>& alignment) {
  std::vector<std::vector<LastArrival>> found(aligned.devices.size());
  if (!alignment) return found;
  std::vector<bool> is_aligned(aligned.processes.size(), false);
  for (const RankClock& clock : alignment->ranks)
    if (clock.offset_ns) is_aligned[clock.process] = true;
  // Where each span comes to lie in its device's slice.
  std::vector<std::uint32_t> counts(aligned.devices.size()), place(aligned.spans.size(), kNoSpan);
  for (std::size_t i = 0; i < aligned.spans.size(); ++i)
    if (const std::uint16_t stream = aligned.spans[i].stream; stream < aligned.streams.size())
      place[i] = counts[aligned.streams[stream].device]++;
  for (const MatchedCollective& match : match_collectives(aligned, is_aligned)) {
    const Participant* last = nullptr;
    for (const Participant& one : match.participants)
      if (last == nullptr || aligned.spans[one.span].started_ns > aligned.spans[last->span].started_ns) last = &one;
    if (last == nullptr) continue;
    const std::int64_t arrived = aligned.spans[last->span].started_ns;
    const int rank = aligned.processes[aligned.devices[last->device].process].rank;
    for (const Participant& one : match.participants) found[one.device].push_back({place[one.span], arrived, rank});
  }
  return found;
}

}  // namespace weir
