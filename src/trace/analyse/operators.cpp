#include "trace/analyse/operators.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {

Operators operators(const Timeline& timeline) {
  Operators found;
  if (!timeline.has_operations) {
    found.reason = "operators were not read (--operators reads those of PyTorch's and XLA's traces)";
    return found;
  }
  std::unordered_map<std::uint32_t, std::size_t> places;
  std::vector<bool> is_counted(timeline.calls.size());  // a graph's launch submits many commands
  std::uint64_t all_ns = 0;
  for (const Span& span : timeline.spans) {
    if (!is_device_work(span)) continue;
    const std::uint64_t ns = distance_ns(span.started_ns, span.ended_ns);
    all_ns += ns;
    const HostCall* const call = span.call < timeline.calls.size() ? &timeline.calls[span.call] : nullptr;
    const std::uint32_t name = call != nullptr && call->operation < timeline.operations.size()
                                   ? timeline.operations[call->operation].name
                                   : kNoName;
    if (name == kNoName) {
      WithoutOperator& none = call == nullptr ? found.without_call : found.outside;
      ++none.commands;
      none.total_ns += ns;
      continue;
    }
    const auto [at, is_new] = places.try_emplace(name, found.all.size());
    if (is_new) found.all.push_back({.name = name});
    OperatorUse& use = found.all[at->second];
    ++use.commands;
    use.total_ns += ns;
    // A copy's call may wait for the whole stream, which is not launching.
    if (!is_counted[span.call] && is_timed(*call) && call->kind != CallKind::copy)
      use.launching_ns += distance_ns(call->started_ns, call->ended_ns);
    is_counted[span.call] = true;
  }
  if (found.all.empty()) {
    found = {.reason = "no command was submitted within an operator that the source names"};
    return found;
  }
  for (OperatorUse& use : found.all)
    use.share = all_ns > 0 ? static_cast<double>(use.total_ns) / static_cast<double>(all_ns) : 0;
  std::sort(found.all.begin(), found.all.end(), [](const OperatorUse& a, const OperatorUse& b) {
    return std::tie(b.total_ns, a.name) < std::tie(a.total_ns, b.name);
  });
  return found;
}

}  // namespace weir
