#include "trace/analyse/slice.h"

#include <algorithm>
#include <vector>

namespace weir {

namespace {

// Lanes and the source's own properties; no commands yet.
Timeline framed(const Timeline& whole) {
  Timeline part;
  part.source = whole.source;
  part.has_exact_gaps = whole.has_exact_gaps;
  part.clock_error_ns = whole.clock_error_ns;
  part.processes = whole.processes;
  part.devices = whole.devices;
  part.streams = whole.streams;
  part.queues = whole.queues;
  part.has_dependencies = whole.has_dependencies;
  part.modules = whole.modules;
  part.operations = whole.operations;
  part.has_operations = whole.has_operations;
  return part;
}

bool begins_in(const Span& span, const TimeInterval& interval) noexcept {
  return span.started_ns != kNoTime && span.started_ns >= interval.from_ns && span.started_ns < interval.to_ns;
}

// The commands for which `keeps` returns true, with their dependencies and collectives; `call_at` is by call of the
// whole.
template <class Keeps>
void take_commands(const Timeline& whole, const std::vector<std::uint32_t>& call_at, Timeline& part, Keeps&& keeps) {
  std::vector<std::uint32_t> span_at(whole.spans.size(), UINT32_MAX);
  for (std::uint32_t i = 0; i < whole.spans.size(); ++i) {
    const Span& span = whole.spans[i];
    if (!keeps(span)) continue;
    span_at[i] = static_cast<std::uint32_t>(part.spans.size());
    part.spans.push_back(span);
    if (span.call != kNoCall) part.spans.back().call = call_at[span.call];
  }
  for (const Dependency& dependency : whole.dependencies)
    if (span_at[dependency.before] != UINT32_MAX && span_at[dependency.after] != UINT32_MAX)
      part.dependencies.push_back({span_at[dependency.before], span_at[dependency.after]});
  for (CollectiveFacts facts : whole.collectives) {
    if (span_at[facts.span] == UINT32_MAX) continue;
    facts.span = span_at[facts.span];
    part.collectives.push_back(facts);
  }
}

}  // namespace

Timeline slice(const Timeline& whole, std::uint16_t device) {
  if (whole.devices.empty()) return whole;
  Timeline part = framed(whole);
  const std::uint16_t process = whole.devices[device].process;
  std::vector<std::uint32_t> call_at(whole.calls.size(), kNoCall);
  for (std::uint32_t i = 0; i < whole.calls.size(); ++i) {
    if (whole.calls[i].process != process) continue;
    call_at[i] = static_cast<std::uint32_t>(part.calls.size());
    part.calls.push_back(whole.calls[i]);
  }
  take_commands(whole, call_at, part, [&](const Span& span) { return whole.streams[span.stream].device == device; });
  for (const TraceRange& range : whole.ranges)
    if (range.process == process) part.ranges.push_back(range);
  for (const MemoryChange& change : whole.memory)
    if (change.device == device) part.memory.push_back(change);
  return part;
}

std::int64_t first_submission(const Timeline& whole, const TimeInterval& interval) noexcept {
  std::int64_t from_ns = interval.from_ns;
  for (const Span& span : whole.spans)
    if (begins_in(span, interval) && span.submitted_ns != kNoTime) from_ns = std::min(from_ns, span.submitted_ns);
  return from_ns;
}

Timeline within(const Timeline& whole, const TimeInterval& interval) {
  return within(whole, interval, first_submission(whole, interval));
}

Timeline within(const Timeline& whole, const TimeInterval& interval, std::int64_t from_ns) {
  Timeline part = framed(whole);
  part.names = whole.names;
  const auto reaches_in = [&](const auto& one) {
    return one.started_ns != kNoTime && one.ended_ns != kNoTime && one.ended_ns >= from_ns &&
           one.started_ns < interval.to_ns;
  };
  std::vector<std::uint32_t> call_at(whole.calls.size(), kNoCall);
  for (std::uint32_t i = 0; i < whole.calls.size(); ++i) {
    if (!reaches_in(whole.calls[i])) continue;
    call_at[i] = static_cast<std::uint32_t>(part.calls.size());
    part.calls.push_back(whole.calls[i]);
  }
  take_commands(whole, call_at, part, [&](const Span& span) { return begins_in(span, interval); });
  for (const TraceRange& range : whole.ranges)
    if (reaches_in(range)) part.ranges.push_back(range);
  for (const MemoryChange& change : whole.memory)
    if (change.at_ns >= from_ns && change.at_ns < interval.to_ns) part.memory.push_back(change);
  return part;
}

Timeline only_iteration(const Timeline& whole, std::uint32_t iteration) {
  Timeline part = framed(whole);
  part.names = whole.names;
  part.notes = whole.notes;
  take_commands(whole, std::vector<std::uint32_t>(whole.calls.size(), kNoCall), part,
                [&](const Span& span) { return span.iteration == iteration; });
  return part;
}

}  // namespace weir
