#include "trace/analyse/host_stalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

// Host and device clocks differ by less than this where they are the same clock.
constexpr std::int64_t kClockSlack = 2'000;
constexpr double kSlowFactor = 10, kSlowAtLeast = 20'000;
// A launch that waits for a full queue sees a backlog near its maximum.
constexpr std::size_t kDeepBacklog = 16;
// Functions with fewer launches have no usual duration.
constexpr std::size_t kMinLaunches = 5;
// A launch reaches an idle device within tens of microseconds.
constexpr double kHeld = 1'000'000;
// After this many calls in a row that ended before an interval, no earlier call is expected to reach into it. Calls
// nest (runtime around driver), so one is not enough.
constexpr int kMaxNested = 4;

// By call: whether it returned only when the device had finished something.
std::vector<bool> waiting_calls(const Timeline& timeline) {
  std::vector<bool> waits(timeline.calls.size(), false);
  for (std::size_t i = 0; i < waits.size(); ++i)
    waits[i] = timeline.calls[i].kind == CallKind::synchronize && is_timed(timeline.calls[i]);
  for (const Span& span : timeline.spans) {
    if (span.call >= waits.size() || !is_timed(span)) continue;
    const HostCall& call = timeline.calls[span.call];
    if (call.kind == CallKind::copy && is_timed(call) && span.ended_ns <= call.ended_ns &&
        span.ended_ns >= call.started_ns)
      waits[span.call] = true;
  }
  return waits;
}

struct HostPart {
  double synchronizing_ns = 0, in_calls_ns = 0;
  std::uint32_t call = kNoCall;
  double call_ns = 0;
};

// What the thread of call `next` did from `from` to `to`.
HostPart host_part(const Timeline& timeline, const std::vector<bool>& waits, std::uint32_t next, std::int64_t from,
                   std::int64_t to) {
  const HostCall& own = timeline.calls[next];
  std::vector<std::uint32_t> inside;
  int ended_before = 0;
  for (std::uint32_t i = next; i-- > 0 && ended_before < kMaxNested;) {
    const HostCall& call = timeline.calls[i];
    if (call.process != own.process || call.thread != own.thread) break;
    if (!is_timed(call)) continue;
    if (call.ended_ns <= from)
      ++ended_before;
    else
      inside.push_back(i);
  }
  HostPart part;
  std::int64_t done = from;
  // Starts with the earliest, so that an outer call gets all of its time and inner ones add nothing.
  for (auto at = inside.rbegin(); at != inside.rend(); ++at) {
    const HostCall& call = timeline.calls[*at];
    const std::int64_t begin = std::max(done, call.started_ns), end = std::min(to, call.ended_ns);
    if (end <= begin) continue;
    const double took = length_between(begin, end);
    (waits[*at] ? part.synchronizing_ns : part.in_calls_ns) += took;
    if (took > part.call_ns) {
      part.call = *at;
      part.call_ns = took;
    }
    done = end;
  }
  if (length_between(from, to) - part.synchronizing_ns - part.in_calls_ns > part.call_ns) part.call = kNoCall;
  return part;
}

// When the driver had the command, at most its start; kNoTime where unknown.
std::int64_t handed_over(const Timeline& timeline, const std::vector<bool>& waits, const Span& span) {
  if (span.accepted_ns != kNoTime) return std::min(span.accepted_ns, span.started_ns);
  if (span.call >= timeline.calls.size() || waits[span.call] || !is_timed(timeline.calls[span.call])) return kNoTime;
  return std::min(timeline.calls[span.call].ended_ns, span.started_ns);
}

std::optional<LaunchBound> find_launch_bound(const Timeline& timeline, const std::vector<bool>& waits,
                                             std::string& reason) {
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  if (order.empty()) {
    reason = "no command of the device has times";
    return std::nullopt;
  }
  if (std::none_of(order.begin(), order.end(),
                   [&](std::uint32_t i) { return timeline.spans[i].submitted_ns != kNoTime; })) {
    reason = fmt::format("the source does not say when the host submitted a command: {}", timeline.source);
    return std::nullopt;
  }
  LaunchBound found;
  double synchronizing = 0, in_calls = 0;
  std::int64_t until = timeline.spans[order[0]].ended_ns;
  for (std::size_t k = 1; k < order.size(); ++k) {
    const Span* next = &timeline.spans[order[k]];
    const std::int64_t from = until;
    until = std::max(until, next->ended_ns);
    if (next->started_ns <= from) continue;
    const std::int64_t to = next->started_ns;
    ++found.gaps;
    found.idle_ns += length_between(from, to);
    // Of the commands that start together, the first one submitted could have ended the gap.
    std::uint32_t which = order[k];
    for (std::size_t other = k + 1; other < order.size() && timeline.spans[order[other]].started_ns == to; ++other) {
      const std::int64_t submitted = timeline.spans[order[other]].submitted_ns;
      if (submitted == kNoTime || (next->submitted_ns != kNoTime && next->submitted_ns <= submitted)) continue;
      which = order[other];
      next = &timeline.spans[which];
    }
    if (next->submitted_ns == kNoTime ||
        (next->submitted_ns > to && length_between(to, next->submitted_ns) > kClockSlack)) {
      ++found.unknown_gaps;
      found.unknown_ns += length_between(from, to);
      continue;
    }
    const std::int64_t handed = handed_over(timeline, waits, *next);
    const std::int64_t asked = std::min(next->submitted_ns, to);
    double held_ns = handed == kNoTime ? 0 : length_between(std::max({from, handed, asked}), to);
    if (held_ns <= kHeld) held_ns = 0;
    if (held_ns > 0) {
      ++found.held_gaps;
      found.held_ns += held_ns;
      if (held_ns > found.held_most_ns) {
        found.held_most_ns = held_ns;
        found.held_span = which;
      }
    }
    if (next->submitted_ns <= from) {
      if (handed == kNoTime || handed <= from) continue;
      ++found.calling_gaps;
      found.calling_ns += length_between(from, handed);
      found.calling_launch_ns += length_between(handed, to) - held_ns;
      continue;
    }
    LaunchStall stall{from, to, asked, which, kNoCall, 0};
    ++found.host_gaps;
    found.host_ns += length_between(from, stall.submitted_ns);
    found.launch_ns += length_between(stall.submitted_ns, to) - held_ns;
    if (next->call < timeline.calls.size()) {
      const HostPart part = host_part(timeline, waits, next->call, from, stall.submitted_ns);
      synchronizing += part.synchronizing_ns;
      in_calls += part.in_calls_ns;
      stall.call = part.call;
      stall.call_ns = part.call == kNoCall ? 0 : part.call_ns;
    }
    keep_worst(found.longest, stall, kMaxStalls, [](const LaunchStall& a, const LaunchStall& b) {
      return distance_ns(a.from_ns, a.submitted_ns) > distance_ns(b.from_ns, b.submitted_ns);
    });
  }
  if (found.idle_ns > 0) found.share_of_idle = found.host_ns / found.idle_ns;
  if (!timeline.calls.empty()) {
    found.synchronizing_ns = synchronizing;
    found.in_calls_ns = in_calls;
    found.outside_ns = std::max(0.0, found.host_ns - synchronizing - in_calls);
  }
  return found;
}

// Commands that were submitted but not started, at any moment.
class UnstartedCommands {
 public:
  explicit UnstartedCommands(const Timeline& timeline) {
    for (const Span& span : timeline.spans) {
      if (span.submitted_ns == kNoTime || !is_timed(span)) continue;
      submitted_.push_back(span.submitted_ns);
      // Clock errors must not make the count negative.
      started_.push_back(std::max(span.started_ns, span.submitted_ns));
    }
    std::sort(submitted_.begin(), submitted_.end());
    std::sort(started_.begin(), started_.end());
  }
  std::size_t at(std::int64_t ns) const {
    const auto in = std::lower_bound(submitted_.begin(), submitted_.end(), ns) - submitted_.begin();
    const auto out = std::upper_bound(started_.begin(), started_.end(), ns) - started_.begin();
    return in > out ? static_cast<std::size_t>(in - out) : 0;
  }

 private:
  std::vector<std::int64_t> submitted_, started_;
};

void add(BlockedCalls& calls, const BlockedCall& call) {
  ++calls.count;
  calls.total_ns += call.took_ns;
  keep_worst(calls.longest, call, kMaxStalls,
             [](const BlockedCall& a, const BlockedCall& b) { return a.took_ns > b.took_ns; });
}

using Sites = std::map<std::pair<std::uint32_t, std::uint32_t>, CallSite>;

std::vector<CallSite> by_time(const Sites& sites) {
  std::vector<CallSite> found;
  for (const auto& [key, site] : sites) found.push_back(site);
  std::stable_sort(found.begin(), found.end(),
                   [](const CallSite& a, const CallSite& b) { return a.total_ns > b.total_ns; });
  return found;
}

HostBlocked find_blocked(const Timeline& timeline, const std::vector<bool>& waits) {
  HostBlocked found;
  const UnstartedCommands backlog(timeline);
  // Launches for this device only; a process may have several.
  std::vector<bool> is_launch(timeline.calls.size(), false);
  for (const Span& span : timeline.spans)
    if (span.call < is_launch.size() && timeline.calls[span.call].kind == CallKind::launch &&
        is_timed(timeline.calls[span.call]))
      is_launch[span.call] = true;
  std::vector<double> all;
  std::unordered_map<std::uint32_t, std::vector<double>> by_name;
  std::vector<std::size_t> depth(timeline.calls.size(), 0);
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    if (!is_launch[i]) continue;
    const HostCall& call = timeline.calls[i];
    all.push_back(length_between(call.started_ns, call.ended_ns));
    by_name[call.name].push_back(all.back());
    depth[i] = backlog.at(call.started_ns);
    found.most_backlog = std::max(found.most_backlog, depth[i]);
  }
  found.launches = all.size();
  if (!all.empty()) found.launch_p50_ns = median(all);
  std::unordered_map<std::uint32_t, double> limits;
  for (const auto& [name, took] : by_name)
    if (took.size() >= kMinLaunches) limits[name] = std::max(kSlowAtLeast, kSlowFactor * median(took));
  Sites synchronizations, copies;
  const std::size_t deep = std::max(kDeepBacklog, (found.most_backlog + 1) / 2);
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const HostCall& call = timeline.calls[i];
    if (!is_timed(call)) continue;
    const double took = length_between(call.started_ns, call.ended_ns);
    if (waits[i]) {
      const bool is_copy = call.kind == CallKind::copy;
      add(is_copy ? found.copies : found.synchronize, {i, took, backlog.at(call.started_ns)});
      CallSite& site = (is_copy ? copies : synchronizations)[{call.name, call.line}];
      site.name = call.name;
      site.line = call.line;
      ++site.count;
      site.total_ns += took;
    } else if (is_launch[i]) {
      const auto limit = limits.find(call.name);
      if (limit != limits.end() && took > limit->second)
        add(depth[i] >= deep ? found.queue_full : found.slow, {i, took, depth[i]});
    }
  }
  found.synchronize.sites = by_time(synchronizations);
  found.copies.sites = by_time(copies);
  return found;
}

// PyTorch marks each wait for a batch: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__".
std::optional<DataLoading> find_loading(const Timeline& timeline, const std::vector<std::string>& names) {
  std::vector<TimeInterval> waits;
  for (const TraceRange& range : timeline.ranges)
    if (is_timed(range) && range.name < names.size() && names[range.name].starts_with("enumerate(DataLoader)"))
      waits.push_back({range.started_ns, range.ended_ns});
  if (waits.empty()) return std::nullopt;
  std::vector<TimeInterval> work;
  for (const Span& span : timeline.spans)
    if (is_device_work(span)) work.push_back({span.started_ns, span.ended_ns});
  const TimeIntervals busy = unite_all(std::move(work));
  // Before its first command and after its last one the device was not known to be idle.
  const IntervalCover idle(busy.empty() ? TimeIntervals{}
                                        : subtract({{busy.front().from_ns, busy.back().to_ns}}, busy));
  DataLoading found;
  found.waits = waits.size();
  for (const TimeInterval& wait : waits)
    keep_worst(found.longest, LoaderWait{wait.from_ns, wait.to_ns, idle.within(wait)}, kMaxStalls,
               [](const LoaderWait& a, const LoaderWait& b) { return a.idle_ns > b.idle_ns; });
  for (const TimeInterval& wait : unite_all(std::move(waits))) {
    found.total_ns += length_between(wait.from_ns, wait.to_ns);
    found.idle_ns += idle.within(wait);
  }
  return found;
}

}  // namespace

HostStalls host_stalls(const Timeline& timeline, const std::vector<std::string>& names) {
  HostStalls found;
  const std::vector<bool> waits = waiting_calls(timeline);
  found.launch_bound = find_launch_bound(timeline, waits, found.launch_bound_reason);
  if (timeline.calls.empty())
    found.blocked_reason = fmt::format("the source has no calls of the host: {}", timeline.source);
  else
    found.blocked = find_blocked(timeline, waits);
  found.loading = find_loading(timeline, names);
  if (!found.loading) found.loading_reason = "the source marks no waits for a data loader";
  return found;
}

}  // namespace weir
