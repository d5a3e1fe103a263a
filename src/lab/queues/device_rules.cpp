#include "lab/queues/device_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "lab/queues/stamps.h"
#include "lab/queues/switch_gaps.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr int kTrials = 3;                 // all of them must agree
constexpr int kMostStreams = kMaxStreams;  // more than a step has make no difference to it
constexpr int kMostCopyQueues = 32;
constexpr std::int64_t kMomentNs = 2'000'000;  // what is free to go has gone after this long
constexpr const char* kByExperiment = "by experiment";

// The streams that occupy every queue once each of them is busy: as many as there are queues, since streams take queues
// in turn or free ones first. Where each stream keeps a queue in no known order, the first ones that cover all queues.
int holders_of(const QueueProbe& probe) {
  const int queues = *probe.queues;
  if (probe.policy != MappingPolicy::fixed) return queues;
  int seen = 0, streams = 0;
  for (; streams < static_cast<int>(probe.queue_of_stream.size()) && seen < queues; ++streams)
    seen = std::max(seen, probe.queue_of_stream[static_cast<std::size_t>(streams)] + 1);
  return streams;
}

StreamId stream_at(int index) { return static_cast<StreamId>(index); }

// Adds a held kernel and one more after it to each of the first streams, so that no queue lets anything pass. The
// kernels' moments are 0 to 2 x count - 1, their flag is 0.
void block(StampStep& step, int count) {
  for (int i = 0; i < count; ++i) step.hold({.stream = stream_at(i)}, 0, static_cast<std::uint32_t>(i));
  for (int i = 0; i < count; ++i) step.stamp({.stream = stream_at(i)}, 0, static_cast<std::uint32_t>(count + i));
}

// Whether something got through while the first kernel was held, by the timeline. Nothing if it does not show.
std::optional<bool> got_through(const Timeline& timeline, CommandId hold, CommandId command, std::uint32_t iteration) {
  const Span *held = nullptr, *other = nullptr;
  for (const Span& span : timeline.spans) {
    if (span.iteration != iteration) continue;
    if (span.command == hold) held = &span;
    if (span.command == command) other = &span;
  }
  if (held == nullptr || other == nullptr || held->ended_ns == kNoTime || other->ended_ns == kNoTime)
    return std::nullopt;
  return other->ended_ns < held->ended_ns;
}

// Submits a step whose first command is a hold (flag 0), gives the rest time, and releases it. Whether the last command
// got through meanwhile; nothing if trials differ or cannot be seen.
std::optional<bool> lets_last_through(Device& device, StampStep step, int streams) {
  SessionOptions options;
  options.is_traced = true;
  options.trace_iterations = kTrials + 1;
  StampSession session(device, std::move(step), streams, options);
  for (int i = 0; i <= kTrials; ++i) {
    session.begin();
    session.submit_all();
    session.pause(kMomentNs);
    session.release(0);
    session.finish();
  }
  const Timeline timeline = session.timeline();
  const auto last = static_cast<CommandId>(session.step().commands().size() - 1);
  std::optional<bool> found;
  for (std::uint32_t i = 1; i <= kTrials; ++i) {  // the first one is warm-up
    const auto through = got_through(timeline, 0, last, i);
    if (!through || (found && *found != *through)) return std::nullopt;
    found = through;
  }
  return found;
}

// Of a copy that an engine does: drivers put the bytes of small ones into the stream's own queue.
struct Payload {
  static constexpr std::uint64_t kElements = 1 << 18;
  BufferId from = 0, to = 0;
  static Payload in(StampStep& step) {
    return {step.builder().host(ElementType::f32, kElements, Init::constant),
            step.builder().output(ElementType::f32, kElements)};
  }
};

// Copies wait elsewhere if one gets through while all queues are blocked. Then copies that wait for held kernels block
// the copies' queues: as many as it takes to stop one that waits for nothing.
Known<int> count_copy_queues(Device& device, int holders) {
  StampStep blocked(1, static_cast<std::uint32_t>(2 * holders));
  block(blocked, holders);
  const Payload payload = Payload::in(blocked);
  blocked.builder().copy({.stream = stream_at(holders)}, {payload.from}, {payload.to});
  const auto is_apart = lets_last_through(device, std::move(blocked), holders + 1);
  if (!is_apart) return {std::nullopt, "whether copies wait in their stream's queue does not show"};
  if (!*is_apart) return {0, kByExperiment};
  const auto lets_through = [&](int waiting) {
    StampStep step(1, static_cast<std::uint32_t>(waiting));
    std::vector<Payload> payloads;
    for (int i = 0; i <= waiting; ++i) payloads.push_back(Payload::in(step));
    for (int i = 0; i < waiting; ++i) step.hold({.stream = stream_at(i)}, 0, static_cast<std::uint32_t>(i));
    for (int i = 0; i <= waiting; ++i) {
      const Payload& each = payloads[static_cast<std::size_t>(i)];
      step.builder().copy({.stream = stream_at(i)}, {each.from}, {each.to});
    }
    return lets_last_through(device, std::move(step), waiting + 1);
  };
  int open = 0, stopped = kMostCopyQueues + 1;  // waiting copies that leave a queue open, and that stop the next one
  for (int waiting = 1; stopped - open > 1;
       waiting = stopped > kMostCopyQueues ? std::min(2 * open, kMostCopyQueues) : (open + stopped) / 2) {
    const auto is_open = lets_through(waiting);
    if (!is_open) return {std::nullopt, "how many queues copies have differs from trial to trial"};
    (*is_open ? open : stopped) = waiting;
    if (open == kMostCopyQueues) break;
  }
  if (open == kMostCopyQueues) return {kMaxStreams, fmt::format("more than {}: a queue for each stream", open)};
  return {stopped, kByExperiment};
}

Known<bool> host_functions_wait_in_queue(Device& device, int holders) {
  StampStep step(1, static_cast<std::uint32_t>(2 * holders));
  block(step, holders);
  const BufferId from = step.builder().host(ElementType::f32, 16, Init::constant);
  const BufferId to = step.builder().host(ElementType::f32, 16, Init::constant);
  step.builder().launch_on_host("graph_break", {.stream = stream_at(holders)}, {.dims = {16, 0}, .scalars = {}},
                                {{from}, {to}});
  const auto is_apart = lets_last_through(device, std::move(step), holders + 1);
  if (!is_apart) return {std::nullopt, "whether host functions wait in their stream's queue does not show"};
  return {!*is_apart, kByExperiment};
}

// One command per stream, each long enough to meet the others: how many run at once, by the timeline.
Known<int> count_at_once(Device& device, const std::function<void(StepBuilder&, Lane)>& add) {
  constexpr int kStreams = 16;
  StepBuilder builder(1);
  for (int i = 0; i < kStreams; ++i) add(builder, {.stream = stream_at(i)});
  const Step step = std::move(builder).seal(kStreams);
  const Placement placement = place(step, "natural");
  SessionOptions options;
  options.is_traced = true;
  options.marks_iterations = false;
  options.trace_iterations = 2;
  const auto session = device.prepare(step, placement, options);
  std::vector<CommandId> all(step.commands().size());
  std::iota(all.begin(), all.end(), CommandId{0});
  for (int i = 0; i < 2; ++i) {
    session->begin_iteration();
    session->submit(all);
    session->finish();
  }
  std::vector<Moment> moments;
  for (const Span& span : session->timeline().spans)
    if (span.iteration == 1 && span.started_ns != kNoTime && span.ended_ns != kNoTime)
      moments.push_back({span.started_ns, span.ended_ns});
  if (moments.size() < 2) return {std::nullopt, "the timeline does not show them"};
  return {std::max(1, most_at_once(moments)), kByExperiment};
}

void add_host_function(StepBuilder& builder, Lane lane) {
  constexpr std::uint64_t kElements = 1 << 18;
  const KernelShape shape{.dims = {kElements, 500'000}, .scalars = {}};
  const BufferId from = builder.host(ElementType::f32, kElements, Init::constant);
  builder.launch_on_host("graph_break", lane, shape,
                         {{from}, {builder.host(ElementType::f32, kElements, Init::constant)}});
}

void add_copy(StepBuilder& builder, Lane lane, CopyDirection direction) {
  constexpr std::uint64_t kElements = 1 << 20;
  const auto on_host = [&] { return builder.host(ElementType::f32, kElements, Init::constant); };
  const auto on_device = [&] { return builder.output(ElementType::f32, kElements); };
  const BufferId from = direction == CopyDirection::to_device ? on_host() : on_device();
  builder.copy(lane, {from}, {direction == CopyDirection::to_host ? on_host() : on_device()});
}

// Holds a kernel in each queue with nothing after it. Where a kernel of another stream does not get through, either its
// queue waits for the held one's end, or no further kernel may run: then the end of any held one lets all through.
Known<bool> find_barrier(Device& device, int holders) {
  const int marks = std::max(2, holders);
  const auto first_mark = static_cast<std::uint32_t>(holders);
  StampStep step(static_cast<std::uint32_t>(holders), static_cast<std::uint32_t>(holders + marks));
  for (int i = 0; i < holders; ++i)
    step.hold({.stream = stream_at(i)}, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i));
  for (int i = 0; i < marks; ++i)
    step.stamp({.stream = stream_at(holders + i)}, 0, first_mark + static_cast<std::uint32_t>(i));
  StampSession session(device, std::move(step), holders + marks);
  const auto count_ended = [&] {
    const auto moments = session.moments(first_mark, static_cast<std::uint32_t>(marks));
    return std::count_if(moments.begin(), moments.end(), [](const Moment& moment) { return moment.ended_ns != 0; });
  };
  std::optional<bool> found;
  bool is_full = false;
  for (int trial = 0; trial <= kTrials; ++trial) {
    session.begin();
    session.submit_all();
    session.pause(kMomentNs);
    const bool is_stuck = count_ended() < marks;
    // Holds that do not run leave no room for marks either, whatever queues do.
    for (int i = 0; i < holders; ++i)
      is_full |= trial > 0 && is_stuck && session.moment(static_cast<std::uint32_t>(i)).started_ns == 0;
    if (is_stuck && holders > 1) {
      session.release(0);
      session.pause(kMomentNs);
      is_full |= trial > 0 && count_ended() == marks;
    }
    bool was_held = true;
    for (int i = 1; i < holders; ++i) was_held &= session.moment(static_cast<std::uint32_t>(i)).ended_ns == 0;
    for (int i = 0; i < holders; ++i) session.release(static_cast<std::uint32_t>(i));
    session.finish();
    if (trial == 0) continue;  // warm-up
    if (!was_held || (found && *found != is_stuck)) return {std::nullopt, "trials differ"};
    found = is_stuck;
  }
  if (*found && (is_full || holders == 1))
    return {std::nullopt, "no more kernels run at once than there are queues, which hides what a queue waits for"};
  return {*found, kByExperiment};
}

// Launches that have nothing to wait for, one per stream, behind blocked queues: how far apart the starts of those in
// one queue are once it is free. The timeline says which queue each was in; with one queue there is no question. Where
// starts of all queues together are evenly spread, something that all queues share sets the pace, and that is the time
// then.
Known<double> time_packets(Device& device, int queues, int holders, int depth) {
  const int marks = std::min(kMostStreams - holders, queues * (depth - 4));  // they spread over all queues
  if (marks < 3 * queues) return {std::nullopt, "too few launches can be put into one queue"};
  StampStep step(1, static_cast<std::uint32_t>(2 * holders + marks));
  block(step, holders);
  for (int i = 0; i < marks; ++i)
    step.stamp({.stream = stream_at(holders + i)}, 0, static_cast<std::uint32_t>(2 * holders + i));
  SessionOptions options;
  options.is_traced = true;
  options.trace_iterations = kTrials + 1;
  StampSession session(device, std::move(step), holders + marks, options);
  for (int trial = 0; trial <= kTrials; ++trial) {
    session.begin();
    session.submit_all();
    const bool was_queued = session.moment(0).ended_ns == 0;
    session.release(0);
    session.finish();
    if (!was_queued) return {std::nullopt, "the host could not queue launches ahead"};
  }
  std::vector<double> apart, apart_in_all;
  const auto add_gaps = [](std::vector<std::int64_t>& starts, std::vector<double>& gaps) {
    std::sort(starts.begin(), starts.end());
    for (std::size_t i = 1; i < starts.size(); ++i) gaps.push_back(static_cast<double>(starts[i] - starts[i - 1]));
  };
  const Timeline timeline = session.timeline();
  for (std::uint32_t trial = 1; trial <= kTrials; ++trial) {  // the first one is warm-up
    std::map<std::int32_t, std::vector<std::int64_t>> starts;
    std::vector<std::int64_t> all;
    for (const Span& span : timeline.spans) {
      if (span.iteration != trial || span.command < 2 * static_cast<CommandId>(holders)) continue;
      if (span.started_ns == kNoTime || (span.queue == kNoQueue && queues > 1)) continue;
      starts[span.queue].push_back(span.started_ns);
      all.push_back(span.started_ns);
    }
    for (auto& [queue, each] : starts) add_gaps(each, apart);
    add_gaps(all, apart_in_all);
  }
  if (apart.empty()) return {std::nullopt, "the timeline does not say which queue a launch was in"};
  const double own = median(apart), shared = median(apart_in_all);
  return {shared * queues > 0.7 * own ? shared : own, kByExperiment};
}

Known<int> count_slots(Device& device, int multiprocessors) {
  const ConcurrentBlocks found = count_concurrent_blocks(device);
  if (found.is_more || found.blocks < multiprocessors)
    return {std::nullopt, fmt::format("{} blocks ran at once, which says nothing of a multiprocessor", found.blocks)};
  return {found.blocks / multiprocessors, kByExperiment};
}

}  // namespace

DeviceRules measure_rules(Device& device, const QueueProbe& probe, const RulesRequest& request) {
  const DeviceInfo info = device.info();
  DeviceRules rules;
  rules.copy_queues.reason = "the step has no copies";
  rules.host_in_queue.reason = rules.host_functions.reason = "the step has no host functions";
  rules.event_gap_ns.reason = "there is one queue: the gap between streams shows it";
  rules.slots.reason = "the number of multiprocessors is not known";
  if (!info.is_gpu) {
    // A worker is held together with its kernel, so that nothing gets through whatever the queues do.
    rules.barrier.reason = rules.packet_ns.reason = rules.copy_queues.reason = "only GPUs are examined";
    rules.queue_depth.reason = rules.resident_kernels.reason = rules.slots.reason = rules.barrier.reason;
    rules.host_in_queue.reason = rules.host_functions.reason = rules.event_gap_ns.reason = rules.barrier.reason;
    return rules;
  }
  constexpr int kMostLaunches = 4096;
  rules.queue_depth = measure_queue_depth(device, kMostLaunches).launches;
  const int holders = holders_of(probe);
  const int depth = rules.queue_depth.value.value_or(kMostLaunches);
  rules.barrier = find_barrier(device, holders);
  // With barriers there is one kernel per queue and no more, so that other limits do not show.
  if (rules.barrier.value.value_or(false)) {
    rules.resident_kernels.reason = rules.packet_ns.reason = "a queue waits for the end of each of its kernels";
  } else {
    rules.resident_kernels = measure_resident_limit(device, kMostStreams).kernels;
    rules.packet_ns = time_packets(device, *probe.queues, holders, depth);
  }
  if (info.multiprocessors.value) rules.slots = count_slots(device, *info.multiprocessors.value);
  if (*probe.queues > 1) {
    SwitchRequest chain;
    chain.hops = std::min(100, depth / 2);
    chain.repetitions = 3;
    const int streams = std::min(2 * *probe.queues, chain.hops / 2);
    if (streams >= 2)
      rules.event_gap_ns = measure_event_gap(device, streams, chain);
    else
      rules.event_gap_ns.reason = "a queue takes too few launches for a chain";
  }
  if (request.has_copies) {
    rules.copy_queues = count_copy_queues(device, holders);
    for (int i = 0; i < kCopyDirections; ++i)
      rules.copies[static_cast<std::size_t>(i)] = count_at_once(
          device, [&](StepBuilder& builder, Lane lane) { add_copy(builder, lane, static_cast<CopyDirection>(i)); });
  }
  if (request.has_host_functions) {
    rules.host_in_queue = host_functions_wait_in_queue(device, holders);
    rules.host_functions = count_at_once(device, add_host_function);
  }
  return rules;
}

}  // namespace weir
