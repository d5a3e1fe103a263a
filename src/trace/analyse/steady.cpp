#include "trace/analyse/steady.h"

#include <algorithm>
#include <vector>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr double kMinStartup = 100'000'000;
constexpr double kMinShare = 0.1;   // of the span; less hardly changes a figure
constexpr double kMinIdle = 0.5;    // of start-up
constexpr double kMaxWork = 0.2;    // of the kernels, and of their time, that may be part of start-up
constexpr double kTimesAsLong = 5;  // than any gap of the steady part
constexpr double kWindDown = 0.01;  // gaps with less work than this after them are those of a program that ends
constexpr std::size_t kMinKernels = 20;

// Kernels only: at the start weights are copied, and collectives wait for ranks that are still loading.
struct Work {
  double count = 0, ns = 0;
  void add(const Span& span) {
    if (span.kind != SpanKind::kernel) return;
    ++count;
    ns += length_between(span.started_ns, span.ended_ns);
  }
  bool is_within(double share, const Work& all) const { return count <= share * all.count && ns <= share * all.ns; }
};

using Order = std::vector<std::uint32_t>;

Work work_of(const Timeline& timeline, const Order& order, std::int64_t before_ns = INT64_MAX) {
  Work work;
  for (const std::uint32_t i : order)
    if (timeline.spans[i].started_ns < before_ns) work.add(timeline.spans[i]);
  return work;
}

// Whether the host asked for the next command only in the second half of the gap, as far as is known. A device that
// waits although it was asked is not starting up.
bool is_of_host(const Span& next, std::int64_t from_ns) {
  const std::int64_t asked = next.submitted_ns == kNoTime ? next.started_ns : next.submitted_ns;
  return length_between(from_ns, asked) >= 0.5 * length_between(from_ns, next.started_ns);
}

// For one device, whose work is in `order`, by start.
std::optional<std::int64_t> steady_from(const Timeline& timeline, const Order& order, const Work& all) {
  // By position: when everything before it had ended, and the idle time until it started.
  std::vector<std::int64_t> ended(order.size());
  std::vector<double> idle(order.size());
  double idle_ns = 0;
  std::int64_t until = timeline.spans[order[0]].started_ns;
  for (std::size_t k = 0; k < order.size(); ++k) {
    ended[k] = until;
    idle[k] = idle_ns += length_between(until, timeline.spans[order[k]].started_ns);
    until = std::max(until, timeline.spans[order[k]].ended_ns);
  }
  const std::int64_t first = timeline.spans[order[0]].started_ns;
  Work after;
  double longest = 0;  // of the gaps after this one
  double span_ns = 0;  // from the first start to where the program begins to end
  for (std::size_t k = order.size(); k-- > 1;) {
    const Span& next = timeline.spans[order[k]];
    after.add(next);
    if (after.is_within(kWindDown, all)) continue;
    if (span_ns == 0) span_ns = length_between(first, next.ended_ns);
    const double gap = length_between(ended[k], next.started_ns);
    if (gap <= longest) continue;
    const double startup = length_between(first, next.started_ns);
    const Work before{all.count - after.count, all.ns - after.ns};
    if (startup < kMinStartup || startup < kMinShare * span_ns) return std::nullopt;
    if (gap >= kTimesAsLong * longest && idle[k] >= kMinIdle * startup && before.is_within(kMaxWork, all) &&
        is_of_host(next, ended[k]))
      return next.started_ns;
    longest = gap;
  }
  return std::nullopt;
}

std::vector<Order> orders_by_device(const Timeline& timeline) {
  std::vector<Order> orders(std::max<std::size_t>(1, timeline.devices.size()));
  for (const std::uint32_t i : device_work_by_start(timeline)) {
    const std::uint16_t stream = timeline.spans[i].stream;
    const std::size_t device = stream < timeline.streams.size() ? timeline.streams[stream].device : 0;
    if (device < orders.size()) orders[device].push_back(i);
  }
  return orders;
}

}  // namespace

std::vector<std::optional<std::int64_t>> steady_starts(const Timeline& timeline) {
  std::vector<std::optional<std::int64_t>> starts;
  for (const Order& order : orders_by_device(timeline)) {
    const Work all = work_of(timeline, order);
    if (all.count >= kMinKernels) starts.push_back(steady_from(timeline, order, all));
  }
  return starts;
}

std::optional<std::int64_t> common_steady_start(std::span<const std::optional<std::int64_t>> starts) {
  std::optional<std::int64_t> from;
  for (const std::optional<std::int64_t>& own : starts) {
    if (!own) return std::nullopt;
    from = from ? std::max(*from, *own) : *own;
  }
  return from;
}

bool are_steady_from(const Timeline& timeline, std::int64_t from_ns) {
  for (const Order& order : orders_by_device(timeline)) {
    const Work all = work_of(timeline, order);
    if (all.count >= kMinKernels && !work_of(timeline, order, from_ns).is_within(kMaxWork, all)) return false;
  }
  return true;
}

std::optional<std::int64_t> steady_from(const Timeline& timeline) {
  const std::optional<std::int64_t> from = common_steady_start(steady_starts(timeline));
  return from && are_steady_from(timeline, *from) ? from : std::nullopt;
}

}  // namespace weir
