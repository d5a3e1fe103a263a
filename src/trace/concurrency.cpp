#include "trace/concurrency.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weir {

std::optional<Concurrency> concurrency(const Timeline& timeline) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const Span& span : timeline.spans) {
    if (span.started_ns == kNoTime || span.ended_ns <= span.started_ns) continue;
    changes.emplace_back(span.started_ns, +1);
    changes.emplace_back(span.ended_ns, -1);
  }
  if (changes.empty()) return std::nullopt;
  // Ends sort before starts at the same instant: back to back is not at once.
  std::sort(changes.begin(), changes.end());
  Concurrency found;
  double area = 0;
  int running = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0 && running > 0) {
      const auto length = static_cast<double>(changes[i].first - changes[i - 1].first);
      found.busy_ns += length;
      area += length * running;
    }
    running += changes[i].second;
    found.max = std::max(found.max, running);
  }
  found.mean = found.busy_ns > 0 ? area / found.busy_ns : 0;
  return found;
}

}  // namespace weir
