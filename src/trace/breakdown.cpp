#include "trace/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::uint32_t kOutside = UINT32_MAX;

double total(const TimeIntervals& intervals) noexcept { return static_cast<double>(total_ns(intervals)); }

// `order` is by start and not empty.
BusyTimes times_of(const Timeline& timeline, std::span<const std::uint32_t> order) {
  TimeIntervals compute, communication, copy, overlapped;
  BusyTimes times;
  times.first_ns = timeline.spans[order.front()].started_ns;
  times.last_ns = times.first_ns;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    const TimeInterval stretch{span.started_ns, span.ended_ns};
    append(span.kind == SpanKind::kernel ? compute : span.kind == SpanKind::collective ? communication : copy, stretch);
    // Whatever lies before the latest end so far runs beside at least one other: these started earlier.
    append(overlapped, {stretch.from_ns, std::min(stretch.to_ns, times.last_ns)});
    times.last_ns = std::max(times.last_ns, span.ended_ns);
  }
  const TimeIntervals compute_or_copy = unite(compute, copy);
  times.span_ns = static_cast<double>(distance_ns(times.first_ns, times.last_ns));
  times.busy_ns = total(unite(compute_or_copy, communication));
  times.idle_ns = times.span_ns - times.busy_ns;
  times.compute_ns = total(compute);
  times.communication_ns = total(communication);
  times.copy_ns = total(copy);
  times.hidden_communication_ns = total(intersect(communication, compute));
  times.exposed_communication_ns = times.communication_ns - times.hidden_communication_ns;
  times.alone_communication_ns = total(subtract(communication, compute_or_copy));
  times.hidden_copy_ns = total(intersect(copy, compute));
  times.overlapped_ns = total(overlapped);
  return times;
}

// The iteration of each command of `order`, and how many there are.
std::size_t place(const Timeline& timeline, std::span<const std::uint32_t> order, std::span<const TraceRange> ranges,
                  std::vector<std::uint32_t>& iteration_of, std::vector<std::uint32_t>& numbers) {
  iteration_of.assign(order.size(), kOutside);
  if (!ranges.empty()) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Span& span = timeline.spans[order[i]];
      const std::int64_t at = span.submitted_ns != kNoTime ? span.submitted_ns : span.started_ns;
      const auto next =
          std::upper_bound(ranges.begin(), ranges.end(), at,
                           [](std::int64_t time, const TraceRange& range) { return time < range.started_ns; });
      if (next != ranges.begin() && at < std::prev(next)->ended_ns)
        iteration_of[i] = static_cast<std::uint32_t>(std::prev(next) - ranges.begin());
    }
    numbers.resize(ranges.size());
    std::iota(numbers.begin(), numbers.end(), 0U);
    return ranges.size();
  }
  for (const std::uint32_t index : order) numbers.push_back(timeline.spans[index].iteration);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() < 2) return 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    iteration_of[i] = static_cast<std::uint32_t>(
        std::lower_bound(numbers.begin(), numbers.end(), timeline.spans[order[i]].iteration) - numbers.begin());
  return numbers.size();
}

void add_iterations(const Timeline& timeline, std::span<const std::uint32_t> order, std::span<const TraceRange> ranges,
                    Breakdown& to) {
  std::vector<std::uint32_t> iteration_of, numbers;
  to.iteration_count = place(timeline, order, ranges, iteration_of, numbers);
  if (to.iteration_count == 0) return;
  to.outside_iterations = static_cast<std::size_t>(std::count(iteration_of.begin(), iteration_of.end(), kOutside));
  std::vector<std::vector<std::uint32_t>> own(std::min(to.iteration_count, kMostIterations));
  for (std::size_t i = 0; i < order.size(); ++i)
    if (iteration_of[i] < own.size()) own[iteration_of[i]].push_back(order[i]);
  for (std::size_t i = 0; i < own.size(); ++i) {
    IterationTimes& iteration = to.iterations.emplace_back();
    iteration.number = numbers[i];
    if (!ranges.empty()) iteration.name = ranges[i].name;
    iteration.commands = own[i].size();
    if (!own[i].empty()) iteration.times = times_of(timeline, own[i]);
  }
}

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

Breakdown breakdown(const Timeline& timeline, std::span<const TraceRange> iterations) {
  Breakdown found;
  std::vector<bool> has_stream(std::size_t{UINT16_MAX} + 1);
  std::set<std::int32_t> queues;
  std::int32_t last_queue = kNoQueue;
  for (const Span& span : timeline.spans) {
    if (!is_timed(span)) {
      ++found.without_times;
      continue;
    }
    KindTotal& kind = found.kinds[static_cast<std::size_t>(span.kind)];
    ++kind.commands;
    kind.sum_ns += static_cast<double>(distance_ns(span.started_ns, span.ended_ns));
    if (span.kind == SpanKind::host) continue;
    has_stream[span.stream] = true;
    if (span.queue != last_queue && span.queue != kNoQueue) queues.insert(span.queue);
    last_queue = span.queue;
  }
  found.streams = static_cast<std::size_t>(std::count(has_stream.begin(), has_stream.end(), true));
  found.queues = static_cast<std::size_t>(std::distance(queues.begin(), queues.lower_bound(kCopyQueues)));
  found.copy_queues = queues.size() - found.queues;
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  found.commands = order.size();
  if (order.empty()) {
    found.reason = fmt::format("no command of the device has times: {}", timeline.source);
    return found;
  }
  found.times = times_of(timeline, order);
  add_iterations(timeline, order, iterations, found);
  return found;
}

std::vector<TraceRange> iteration_ranges(const Timeline& whole, std::uint16_t process) {
  std::vector<TraceRange> ranges;
  for (const TraceRange& range : whole.ranges) {
    if (range.process != process || range.started_ns == kNoTime || range.ended_ns == kNoTime) continue;
    if (range.ended_ns < range.started_ns || range.name >= whole.names.size()) continue;
    if (is_iteration_name(whole.names[range.name])) ranges.push_back(range);
  }
  // The longer of two that begin together holds the other.
  std::sort(ranges.begin(), ranges.end(), [](const TraceRange& a, const TraceRange& b) {
    return std::tie(a.started_ns, b.ended_ns, a.name) < std::tie(b.started_ns, a.ended_ns, b.name);
  });
  std::vector<TraceRange> apart;
  for (const TraceRange& range : ranges)
    if (apart.empty() || range.started_ns >= apart.back().ended_ns) apart.push_back(range);
  return apart;
}

}  // namespace weir
