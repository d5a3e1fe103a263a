#include "trace/analyse/token_latency.h"

#include <algorithm>
#include <map>

namespace weir {

TokenLatencies token_latencies(const Timeline& timeline, std::span<const TokenMark> marks) {
  struct Iteration {
    std::int64_t begun_ns = INT64_MAX;
    std::map<std::uint32_t, std::int64_t> ended_ns;  // by command
  };
  std::map<std::uint32_t, Iteration> iterations;
  for (const Span& span : timeline.spans) {
    Iteration& iteration = iterations[span.iteration];
    const std::int64_t begun = span.submitted_ns != kNoTime ? span.submitted_ns : span.started_ns;
    if (begun != kNoTime) iteration.begun_ns = std::min(iteration.begun_ns, begun);
    if (span.ended_ns != kNoTime) iteration.ended_ns[span.command] = span.ended_ns;
  }
  TokenLatencies found;
  for (const auto& [number, iteration] : iterations) {
    std::map<std::uint32_t, std::int64_t> last_ns;  // by request
    for (const TokenMark& mark : marks) {
      const auto ended = iteration.ended_ns.find(mark.command);
      if (ended == iteration.ended_ns.end() || iteration.begun_ns == INT64_MAX) continue;
      const auto [last, is_first] = last_ns.try_emplace(mark.request, ended->second);
      if (is_first) {
        found.first_ns.push_back(static_cast<double>(ended->second - iteration.begun_ns));
      } else {
        found.next_ns.push_back(static_cast<double>(ended->second - last->second));
        last->second = ended->second;
      }
    }
  }
  return found;
}

}  // namespace weir
