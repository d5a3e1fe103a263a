#include "lab/queues/switch_gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernel/random.h"
#include "lab/queues/stamps.h"
#include "measure/statistics.h"

namespace weir {
namespace {

struct Chain {
  std::vector<double> gaps, within_queue, across_queues;
  Timeline timeline;
  bool was_queued_ahead = true;
  std::int64_t granularity_ns = 0;  // of the clock of the moments
};

// Which stream each hop is on. in_turns: every hop goes to the next stream. mixed: every second hop stays, the others
// go to streams in random order, so that some stay in their hardware queue whatever the map is.
enum class Route : std::uint8_t { in_turns, mixed };

std::vector<StreamId> streams_of(Route route, int streams, int hops) {
  const auto count = static_cast<std::size_t>(streams);
  std::vector<StreamId> order(count);
  std::iota(order.begin(), order.end(), StreamId{0});
  const std::size_t stay = route == Route::mixed && streams * 2 <= hops ? 2 : 1;
  std::vector<StreamId> found;
  for (std::size_t visit = 0; found.size() < static_cast<std::size_t>(hops); ++visit) {
    const std::size_t next = visit % count;
    if (route == Route::mixed && next == 0)
      for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random_bits(visit, i) % i]);
    for (std::size_t i = 0; i < stay; ++i) found.push_back(order[next]);
  }
  found.resize(static_cast<std::size_t>(hops));
  return found;
}

// A held kernel followed by a chain of stamps. Hop i claims the moment of hop i + 1, which orders them.
StampStep chain_step(Route route, int streams, const SwitchRequest& request) {
  std::vector<StreamId> stream_of = streams_of(route, streams, request.hops);
  // Another hop on each stream follows those that are measured, so that until then all of them have commands: hops get
  // cheaper as queues run empty.
  const StreamId last = stream_of.back();
  for (int i = 1; i <= streams && streams > 1; ++i) stream_of.push_back(static_cast<StreamId>((last + i) % streams));
  const auto hops = static_cast<std::uint32_t>(stream_of.size());
  StampStep step(1, hops + 2);
  step.hold({.stream = stream_of[0]}, 0, 0, 2);
  for (std::uint32_t hop = 0; hop < hops; ++hop)
    // Durations vary, so that only the clock's own step divides all times between them.
    step.stamp({.stream = stream_of[hop]}, request.stamp_ns + 37 * (hop % 8), hop + 1, 1, 2);
  return step;
}

// Splits the gaps between streams into those within a queue and those across queues, if the timeline knows queues.
void sort_by_queue(Chain& chain, const StampSession& session, std::span<const Moment> moments,
                   std::uint32_t iteration) {
  std::vector<const Span*> span_of(moments.size() + 1, nullptr);  // by command: the held kernel is command 0
  for (const Span& span : chain.timeline.spans)
    if (span.iteration == iteration && span.command < span_of.size()) span_of[span.command] = &span;
  for (std::size_t i = 1; i < moments.size(); ++i) {
    const Span* const before = span_of[i];
    const Span* const after = span_of[i + 1];
    if (before == nullptr || after == nullptr || before->queue == kNoQueue || after->queue == kNoQueue) continue;
    if (session.step().commands()[i].stream == session.step().commands()[i + 1].stream) continue;
    for (const double gap : gaps_between(moments.subspan(i - 1, 2)))
      (before->queue == after->queue ? chain.within_queue : chain.across_queues).push_back(gap);
  }
}

Chain run_chain(Device& device, int streams, Route route, const SwitchRequest& request, const SessionOptions& options) {
  Chain chain;
  StampSession session(device, chain_step(route, streams, request), streams, options);
  const auto hops = static_cast<std::uint32_t>(request.hops);
  std::vector<std::vector<Moment>> runs;
  for (int i = 0; i <= request.repetitions; ++i) {
    session.begin();
    session.submit_all();
    // If the held kernel has already ended by itself, the host was too slow.
    if (session.moment(0).ended_ns != 0) chain.was_queued_ahead = false;
    session.release(0);
    session.finish();
    runs.push_back(session.moments(1, hops));
    if (i == 0) continue;  // the first one is warm-up
    chain.granularity_ns = std::gcd(chain.granularity_ns, clock_step_ns(runs.back()));
    const std::vector<double> gaps = gaps_between(runs.back());
    chain.gaps.insert(chain.gaps.end(), gaps.begin(), gaps.end());
  }
  if (!options.is_traced) return chain;
  chain.timeline = session.timeline();
  // The held kernel, the warm-up iteration and what follows the measured hops do not count.
  std::erase_if(chain.timeline.spans,
                [&](const Span& span) { return span.command == 0 || span.command > hops || span.iteration == 0; });
  for (std::size_t i = 1; i < runs.size(); ++i) sort_by_queue(chain, session, runs[i], static_cast<std::uint32_t>(i));
  return chain;
}

Known<Gaps> known_gaps(std::span<const double> gaps, const std::string& reason) {
  const auto summary = summarise_gaps(gaps);
  return {summary, summary ? "by the kernels' own moments" : reason};
}

// All streams' kernels wait for one held kernel, so that the makespan excludes the host's time to submit them.
Known<Serialisation> measure_serialisation(Device& device, int streams, const SwitchRequest& request) {
  const auto kernels = static_cast<std::uint32_t>(streams * request.depth);
  StampStep step(1, kernels + 1);
  step.hold({}, 0, 0, kernels + 1);
  for (std::uint32_t i = 0; i < kernels; ++i)
    step.stamp({.stream = static_cast<StreamId>(i / static_cast<std::uint32_t>(request.depth))}, request.parallel_ns,
               i + 1);
  StampSession session(device, std::move(step), streams);
  std::vector<CommandId> order(kernels + 1);
  std::iota(order.begin(), order.end(), CommandId{0});
  // Runs the first `count` kernels, which are those of the first streams.
  const auto measure = [&](std::uint32_t count) {
    std::vector<double> makespans;
    for (int i = 0; i <= request.repetitions; ++i) {
      session.begin();
      session.submit(std::span(order).first(count + 1));
      session.release(0);
      session.finish();
      if (i > 0) makespans.push_back(static_cast<double>(makespan_ns(session.moments(1, count))));
    }
    return median(makespans);
  };
  Serialisation found;
  found.kernels = static_cast<int>(kernels);
  found.ideal_ns = measure(static_cast<std::uint32_t>(request.depth));
  found.makespan_ns = streams == 1 ? found.ideal_ns : measure(kernels);
  if (found.makespan_ns <= 0) return {std::nullopt, "the kernels left no moments"};
  return {found, "by the kernels' own moments"};
}

}  // namespace

std::int64_t clock_step_ns(std::span<const Moment> moments) {
  std::int64_t step = 0;
  for (std::size_t i = 1; i < moments.size(); ++i) {
    if (moments[i].started_ns == 0 || moments[i - 1].started_ns == 0) continue;
    step = std::gcd(step, moments[i].started_ns - moments[i - 1].started_ns);
  }
  return step;
}

std::vector<double> gaps_between(std::span<const Moment> chain) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (chain[i].started_ns == 0 || chain[i - 1].ended_ns == 0) continue;
    // Subtracts integers: clocks that count from 1970 do not fit a double.
    gaps.push_back(static_cast<double>(chain[i].started_ns - chain[i - 1].ended_ns));
  }
  return gaps;
}

std::optional<Gaps> summarise_gaps(std::span<const double> gaps) {
  if (gaps.empty()) return std::nullopt;
  return Gaps{gaps.size(), quantile(gaps, 0.5), quantile(gaps, 0.9)};
}

std::optional<Gaps> measure_hop_gaps(Device& device, int streams, const SwitchRequest& request) {
  const Chain chain = run_chain(device, streams, Route::in_turns, request,
                                {.is_traced = true, .trace_iterations = request.repetitions + 1});
  std::vector<Span> spans = chain.timeline.spans;
  if (!chain.timeline.has_exact_gaps) return summarise_gaps(chain.gaps);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.iteration != b.iteration ? a.iteration < b.iteration : a.command < b.command;
  });
  std::vector<double> gaps;
  for (std::size_t i = 1; i < spans.size(); ++i) {
    const Span& before = spans[i - 1];
    const Span& after = spans[i];
    if (before.iteration != after.iteration || before.ended_ns == kNoTime || after.started_ns == kNoTime) continue;
    gaps.push_back(static_cast<double>(after.started_ns - before.ended_ns));
  }
  return summarise_gaps(gaps);
}

Known<double> measure_event_gap(Device& device, int streams, const SwitchRequest& request) {
  const Chain alone = run_chain(device, 1, Route::in_turns, request, {});
  const Chain mixed = run_chain(device, streams, Route::mixed, request,
                                {.is_traced = true, .trace_iterations = request.repetitions + 1});
  const auto within = summarise_gaps(alone.gaps), between = summarise_gaps(mixed.within_queue);
  if (!within || !between) return {std::nullopt, "the timeline shows no hop from stream to stream within a queue"};
  return {std::max(0.0, between->p50_ns - within->p50_ns), "by the kernels' own moments"};
}

StreamSwitch measure_switch_gaps(Device& device, int streams, const SwitchRequest& request) {
  StreamSwitch found;
  found.streams = streams;
  const Chain plain = run_chain(device, streams, Route::in_turns, request, {});
  const bool was_clock_stuck = plain.granularity_ns == 0 && !plain.gaps.empty();  // for a whole chain
  if (was_clock_stuck || plain.granularity_ns > request.stamp_ns / 4) {
    const std::string coarse =
        was_clock_stuck
            ? std::string("the device's clock did not move during a chain: it is too coarse for gaps")
            : fmt::format("the device's clock goes in steps of {} ns, too coarse for gaps", plain.granularity_ns);
    found.hops.reason = found.graph.reason = found.within_queue.reason = found.across_queues.reason = coarse;
    found.timeline.reason = found.controlled.reason = found.serialisation.reason = coarse;
    return found;
  }
  found.hops = known_gaps(plain.gaps, "the kernels left no moments");
  found.was_queued_ahead = plain.was_queued_ahead;
  if (device.info().graphs) {
    const Chain graph = run_chain(device, streams, Route::in_turns, request, {.mode = SubmitMode::graph});
    found.graph = known_gaps(graph.gaps, "the kernels left no moments");
  } else {
    found.graph.reason = "the device has no graphs";
  }

  const Chain traced = run_chain(device, streams, Route::mixed, request,
                                 {.is_traced = true, .trace_iterations = request.repetitions + 1});
  found.timeline = queue_switch(traced.timeline);
  const bool has_queues = std::any_of(traced.timeline.spans.begin(), traced.timeline.spans.end(),
                                      [](const Span& span) { return span.queue != kNoQueue; });
  const std::string no_queues = "the timeline does not say which queue a command was on: " + traced.timeline.source;
  const std::string no_hops = streams == 1 ? "there is only one stream" : "no such hop in this layout";
  found.within_queue = known_gaps(traced.within_queue, has_queues ? no_hops : no_queues);
  found.across_queues = known_gaps(traced.across_queues, has_queues ? no_hops : no_queues);

  found.controlled = measure_switch_cost(device, streams);
  found.serialisation = measure_serialisation(device, streams, request);
  return found;
}

}  // namespace weir
