#include "run/describe_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/options.h"
#include "device/plan.h"

namespace weir {
namespace {

// Maps equal texts to one number.
class Names {
 public:
  explicit Names(std::vector<std::string>& texts) : texts_(texts) {}
  std::uint32_t operator()(const std::string& text) {
    const auto [at, is_new] = numbers_.emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }

 private:
  std::vector<std::string>& texts_;
  std::map<std::string, std::uint32_t> numbers_;
};

SpanKind kind_of(const Command& command) {
  constexpr SpanKind kKinds[] = {SpanKind::kernel, SpanKind::copy, SpanKind::host, SpanKind::collective};
  return kKinds[static_cast<std::size_t>(command.kind)];
}

CollectiveKind kind_of(CollectiveOp op) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                       CollectiveKind::all_reduce, CollectiveKind::all_to_all,
                                       CollectiveKind::send_receive};
  return kKinds[static_cast<std::size_t>(op)];
}

// Copies are named as in profilers' traces, because tools recognise the direction by these words.
std::string name_of_copy(const Step& step, CommandId id) {
  const auto accesses = step.accesses(id);
  const auto place = [&](const Access& access) { return step.buffers()[access.buffer].place; };
  const bool is_from_host = place(accesses[0]) == Place::host, is_to_host = place(accesses[1]) == Place::host;
  if (is_from_host && is_to_host) return "Memcpy HtoH (Pinned -> Pinned)";
  if (is_from_host) return "Memcpy HtoD (Pinned -> Device)";
  return is_to_host ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy DtoD (Device -> Device)";
}

std::string name_of_command(const Step& step, CommandId id) {
  const Command& command = step.commands()[id];
  if (command.kind == CommandKind::copy) return name_of_copy(step, id);
  if (command.kind == CommandKind::collective) return std::string(name_of(command.collective));
  return std::string(kernel(command.kernel).name);
}

std::uint64_t bytes_of(const Step& step, CommandId id) {
  const Command& command = step.commands()[id];
  if (command.kind != CommandKind::copy && command.kind != CommandKind::collective) return 0;
  const auto accesses = step.accesses(id);
  return std::max(accesses[0].size_bytes, accesses[1].size_bytes);
}

std::string name_of_call(const DeviceInfo& device, CommandKind kind, bool is_graph) {
  if (is_graph) return device.calls.launch_graph;
  const std::string names[] = {device.calls.launch_kernel, device.calls.launch_copy, device.calls.launch_host,
                               "launch collective"};
  return names[static_cast<std::size_t>(kind)];
}

std::int64_t number_of(const std::string& device) {
  const std::size_t colon = device.find(':');
  return colon == std::string::npos ? 0 : parse_integer(std::string_view(device).substr(colon + 1)).value_or(0);
}

void sort_by_start(std::vector<Span>& spans) {
  const auto key = [](const Span& span) {
    return std::make_tuple(span.started_ns == kNoTime, span.started_ns, span.ended_ns, span.stream, span.iteration,
                           span.command);
  };
  std::sort(spans.begin(), spans.end(), [&](const Span& a, const Span& b) { return key(a) < key(b); });
}

// One call per command; in graph mode one per segment, whose spans share their submission time.
void add_calls(Timeline& timeline, const DeviceInfo& device, const Step& step, const SubmitChoice& submit,
               const std::vector<TracedPass::Round>& rounds, Names& names) {
  const bool is_graph = submit.mode == SubmitMode::graph;
  std::map<std::tuple<std::uint32_t, std::int64_t>, std::uint32_t> graphs;
  std::vector<std::pair<HostCall, std::vector<std::uint32_t>>> calls;
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    if (span.submitted_ns == kNoTime) continue;
    if (is_graph) {
      const auto [at, is_new] =
          graphs.emplace(std::tuple(span.iteration, span.submitted_ns), static_cast<std::uint32_t>(calls.size()));
      if (!is_new) {
        calls[at->second].second.push_back(i);
        continue;
      }
    }
    const CommandKind kind = step.commands()[span.command].kind;
    HostCall call;
    call.name = names(name_of_call(device, kind, is_graph));
    call.thread = static_cast<std::uint32_t>(span.stream % submit.host_threads());
    call.kind = kind == CommandKind::copy && !is_graph ? CallKind::copy : CallKind::launch;
    call.started_ns = span.submitted_ns;
    call.ended_ns = span.accepted_ns == kNoTime ? span.submitted_ns : std::max(span.submitted_ns, span.accepted_ns);
    calls.push_back({call, {i}});
  }
  // The host waits for each iteration, at the earliest after its last call had returned; the exact start is not known.
  const std::uint32_t wait = names(device.calls.wait);
  std::map<std::uint32_t, std::int64_t> last;
  for (const auto& [call, spans] : calls) {
    std::int64_t& ns = last.emplace(timeline.spans[spans[0]].iteration, call.ended_ns).first->second;
    ns = std::max(ns, call.ended_ns);
  }
  for (const TracedPass::Round& round : rounds) {
    const auto from = last.find(round.iteration);
    if (from == last.end() || from->second > round.seen_ns) continue;
    HostCall call;
    call.name = wait;
    call.kind = CallKind::synchronize;
    call.started_ns = from->second;
    call.ended_ns = round.seen_ns;
    calls.push_back({call, {}});
  }
  std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.thread, a.first.started_ns) < std::tie(b.first.thread, b.first.started_ns);
  });
  for (auto& [call, spans] : calls) {
    call.correlation = timeline.calls.size() + 1;
    for (const std::uint32_t span : spans)
      timeline.spans[span].call = static_cast<std::uint32_t>(timeline.calls.size());
    timeline.calls.push_back(call);
  }
}

void add_dependencies(Timeline& timeline, const Step& step, const Placement& placement, bool is_graph) {
  const StepPlan plan = is_graph ? make_graph_plan(step, placement) : make_plan(step, placement, false);
  std::vector<CommandId> recorded_by(plan.event_count);
  for (CommandId id = 0; id < plan.hops.size(); ++id)
    if ((plan.hops[id].flags & StepPlan::kRecords) != 0) recorded_by[plan.hops[id].event] = id;
  std::map<std::pair<std::uint32_t, CommandId>, std::uint32_t> spans;
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i)
    spans.emplace(std::pair(timeline.spans[i].iteration, timeline.spans[i].command), i);
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    const StepPlan::Hop& hop = plan.hops[span.command];
    for (std::uint32_t w = 0; w < hop.wait_count; ++w) {
      const auto before = spans.find({span.iteration, recorded_by[plan.waits[hop.first_wait + w]]});
      if (before != spans.end()) timeline.dependencies.push_back({before->second, i});
    }
  }
  timeline.has_dependencies = true;
}

void add_lanes(Timeline& timeline, const DeviceInfo& device, const Step& step, const Placement& placement,
               const std::string& label) {
  timeline.processes.push_back({step.ranks().rank, label});
  timeline.devices.push_back({0, number_of(device.name), device.model.empty() ? device.name : device.model});
  timeline.devices.back().model = device.model;
  timeline.devices.back().multiprocessors = static_cast<std::uint32_t>(device.multiprocessors.value.value_or(0));
  for (int i = 0; i < placement.stream_count; ++i)
    timeline.streams.push_back({0, static_cast<std::uint64_t>(i), fmt::format("stream {}", i)});
  std::set<std::int32_t> queues;
  for (const Span& span : timeline.spans)
    if (span.queue != kNoQueue) queues.insert(span.queue);
  for (const std::int32_t queue : queues)
    timeline.queues.push_back(
        {queue, 0,
         queue < kCopyQueues ? fmt::format("queue {}", queue) : fmt::format("copy engine {}", queue - kCopyQueues)});
}

}  // namespace

void describe_timeline(TracedPass& pass, const DeviceInfo& device, const Step& step, const Placement& placement,
                       const SubmitChoice& submit, const std::string& label) {
  Timeline& timeline = pass.timeline;
  Names names(timeline.names);
  sort_by_start(timeline.spans);
  std::map<std::uint32_t, std::int64_t> seen;
  for (const TracedPass::Round& round : pass.rounds) seen.emplace(round.iteration, round.seen_ns);
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    Span& span = timeline.spans[i];
    const Command& command = step.commands()[span.command];
    span.name = names(name_of_command(step, span.command));
    span.kind = kind_of(command);
    span.bytes = bytes_of(step, span.command);
    if (const auto at = seen.find(span.iteration); at != seen.end() && span.ended_ns != kNoTime)
      span.seen_ns = at->second;
    if (command.kind == CommandKind::collective)
      timeline.collectives.push_back({i, kind_of(command.collective),
                                      static_cast<std::uint32_t>(command.group.within(step.ranks()).count), kNoName,
                                      span.bytes});
  }
  add_lanes(timeline, device, step, placement, label);
  add_calls(timeline, device, step, submit, pass.rounds, names);
  add_dependencies(timeline, step, placement, submit.mode == SubmitMode::graph);
  // Named like PyTorch's steps: tools look for this word.
  for (const TracedPass::Round& round : pass.rounds)
    timeline.ranges.push_back(
        {names(fmt::format("ProfilerStep#{}", round.iteration)), 0, round.begun_ns, round.seen_ns});
}

}  // namespace weir
