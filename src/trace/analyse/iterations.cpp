#include "trace/analyse/iterations.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::uint64_t kRounding = 2'000;  // start and duration were each rounded to whole microseconds

// ProfilerStep#12, iteration 12, Iteration_12, step 12
bool is_iteration_name(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size()) return false;
  name = name.substr(0, digits + 1);
  const std::size_t end = name.find_last_not_of(" #_:");
  if (end == std::string_view::npos) return false;
  name = name.substr(0, end + 1);
  for (const std::string_view known : {"profilerstep", "iteration", "step"})
    if (name.size() == known.size() && std::equal(name.begin(), name.end(), known.begin(), [](char a, char b) {
          return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
        }))
      return true;
  return false;
}

}  // namespace

Iterations place_in_iterations(const Timeline& timeline, std::span<const std::uint32_t> order,
                               std::span<const TraceRange> ranges) {
  Iterations found;
  found.of.assign(order.size(), kNoIteration);
  if (!ranges.empty()) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Span& span = timeline.spans[order[i]];
      const std::int64_t at = span.submitted_ns != kNoTime ? span.submitted_ns : span.started_ns;
      const auto next =
          std::upper_bound(ranges.begin(), ranges.end(), at,
                           [](std::int64_t time, const TraceRange& range) { return time < range.started_ns; });
      if (next != ranges.begin() && at < std::prev(next)->ended_ns)
        found.of[i] = static_cast<std::uint32_t>(std::prev(next) - ranges.begin());
    }
    found.numbers.resize(ranges.size());
    std::iota(found.numbers.begin(), found.numbers.end(), 0U);
    return found;
  }
  std::vector<std::uint32_t>& numbers = found.numbers;
  for (const std::uint32_t index : order) numbers.push_back(timeline.spans[index].iteration);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() < 2) {
    numbers.clear();
    return found;
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    found.of[i] = static_cast<std::uint32_t>(
        std::lower_bound(numbers.begin(), numbers.end(), timeline.spans[order[i]].iteration) - numbers.begin());
  return found;
}

std::vector<std::vector<std::uint32_t>> Iterations::apart(std::span<const std::uint32_t> order,
                                                          std::size_t most) const {
  std::vector<std::vector<std::uint32_t>> own(std::min(numbers.size(), most));
  for (std::size_t i = 0; i < order.size(); ++i)
    if (of[i] < own.size()) own[of[i]].push_back(order[i]);
  return own;
}

std::vector<TraceRange> iteration_ranges(const Timeline& whole, std::uint16_t process, std::size_t* overlapping) {
  std::vector<TraceRange> ranges;
  for (const TraceRange& range : whole.ranges) {
    if (range.process != process || !is_timed(range) || range.name >= whole.names.size()) continue;
    if (is_iteration_name(whole.names[range.name])) ranges.push_back(range);
  }
  // Of two ranges that begin together, the longer contains the other.
  std::sort(ranges.begin(), ranges.end(), [](const TraceRange& a, const TraceRange& b) {
    return std::tie(a.started_ns, b.ended_ns, a.name) < std::tie(b.started_ns, a.ended_ns, b.name);
  });
  std::vector<TraceRange> apart;
  std::size_t overlaps = 0;
  for (const TraceRange& range : ranges) {
    if (!apart.empty() && range.started_ns < apart.back().ended_ns) {
      TraceRange& before = apart.back();
      // Another thread's mark of the same iteration, or a step within an iteration.
      if (range.name == before.name || range.ended_ns <= before.ended_ns) continue;
      overlaps += distance_ns(range.started_ns, before.ended_ns) > kRounding ? 1 : 0;
      before.ended_ns = range.started_ns;
    }
    apart.push_back(range);
  }
  if (overlapping != nullptr) *overlapping = overlaps;
  return apart;
}

}  // namespace weir
