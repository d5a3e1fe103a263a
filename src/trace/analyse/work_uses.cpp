#include "trace/analyse/work_uses.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

struct Moment {
  std::int64_t at_ns;
  WorkClass work;
};

std::size_t number_of(WorkClass work) noexcept { return static_cast<std::size_t>(work); }

}  // namespace

std::vector<WorkUse> work_uses(const Timeline& timeline, const std::vector<std::string>& names) {
  std::array<WorkUse, kWorkClasses> uses;
  std::vector<Moment> starts, ends;
  std::unordered_map<std::uint64_t, WorkClass> known;  // by name and kind
  for (const Span& span : timeline.spans) {
    if (!is_device_work(span)) continue;
    const std::uint64_t key = std::uint64_t{span.name} << 8 | static_cast<std::uint64_t>(span.kind);
    const auto [at, is_new] = known.try_emplace(key);
    if (is_new) at->second = work_class_of(span.kind, span.name < names.size() ? names[span.name] : std::string());
    const WorkClass work = at->second;
    WorkUse& use = uses[number_of(work)];
    use.work = work;
    ++use.commands;
    use.total_ns += distance_ns(span.started_ns, span.ended_ns);
    starts.push_back({span.started_ns, work});
    ends.push_back({span.ended_ns, work});
  }
  const auto earlier = [](const Moment& a, const Moment& b) { return a.at_ns < b.at_ns; };
  if (!std::is_sorted(starts.begin(), starts.end(), earlier)) std::sort(starts.begin(), starts.end(), earlier);
  std::sort(ends.begin(), ends.end(), earlier);

  std::array<std::size_t, kWorkClasses> running{};
  std::size_t started = 0, ended = 0;
  std::int64_t now_ns = 0;
  std::uint64_t busy_ns = 0;
  while (ended < ends.size()) {
    const bool is_end = started == starts.size() || ends[ended].at_ns <= starts[started].at_ns;
    const Moment& next = is_end ? ends[ended] : starts[started];
    // One that has no duration ends before it starts, which is no time either.
    if (const std::uint64_t all = started - ended; started > ended && next.at_ns > now_ns) {
      const std::uint64_t length = distance_ns(now_ns, next.at_ns);
      std::uint64_t left = length;
      WorkUse* first = nullptr;
      for (std::size_t i = 0; i < kWorkClasses; ++i) {
        if (running[i] == 0) continue;
        if (first == nullptr) first = &uses[i];
        const std::uint64_t part = length / all * running[i] + length % all * running[i] / all;
        uses[i].busy_ns += part;
        left -= part;
      }
      if (first != nullptr) first->busy_ns += left;  // what whole nanoseconds leave over
      busy_ns += length;
    }
    now_ns = next.at_ns;
    if (is_end) {
      --running[number_of(next.work)];
      ++ended;
    } else {
      ++running[number_of(next.work)];
      ++started;
    }
  }

  std::vector<WorkUse> found;
  for (WorkUse& use : uses) {
    if (use.commands == 0) continue;
    use.share = busy_ns > 0 ? static_cast<double>(use.busy_ns) / static_cast<double>(busy_ns) : 0;
    found.push_back(use);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const WorkUse& a, const WorkUse& b) { return a.busy_ns > b.busy_ns; });
  return found;
}

}  // namespace weir
