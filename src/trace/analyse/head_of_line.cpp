#include "trace/analyse/head_of_line.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "trace/analyse/readiness.h"
#include "trace/device_spans.h"

namespace weir {
namespace {

constexpr std::size_t kMaxBlockers = 5;

}  // namespace

HeadOfLine head_of_line(const Timeline& timeline,
                        const std::function<std::span<const std::uint32_t>(std::uint32_t)>& predecessors) {
  HeadOfLine result;
  std::map<std::uint32_t, std::vector<const Span*>> iterations;
  for (const Span& span : timeline.spans) {
    if (span.queue == kNoQueue || span.submitted_ns == kNoTime || span.started_ns == kNoTime) continue;
    iterations[span.iteration].push_back(&span);
  }
  if (iterations.empty()) {
    result.reason = timeline.spans.empty() ? "there is no timeline: " + timeline.source
                                           : "the timeline does not know hardware queues: " + timeline.source;
    return result;
  }
  std::map<std::uint32_t, HeadOfLine::Blocker> blockers;
  double waiting_commands = 0, all_commands = 0;
  for (auto& [number, spans] : iterations) {
    std::stable_sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) {
      return std::tuple(handed_over_ns(*a), a->command) < std::tuple(handed_over_ns(*b), b->command);
    });
    std::map<std::uint32_t, std::int64_t> ended;         // by command
    std::map<std::uint16_t, std::int64_t> stream_ended;  // of the command submitted last so far
    std::map<std::int32_t, QueueFront> fronts;           // by queue; their ready_ns is when a command left the queue
    for (const Span* span : spans) ended[span->command] = span->ended_ns;
    for (const Span* span : spans) {
      std::int64_t ready = handed_over_ns(*span);
      for (const std::uint32_t before : predecessors(span->command))
        if (const auto found = ended.find(before); found != ended.end()) ready = std::max(ready, found->second);
      if (const auto own = stream_ended.find(span->stream); own != stream_ended.end())
        ready = std::max(ready, own->second);
      stream_ended[span->stream] = span->ended_ns;
      const std::int64_t left = left_queue_ns(*span);
      QueueFront& front = fronts[span->queue];
      const QueueFront::Latest& ahead = front.for_stream(span->stream);
      const std::int64_t until = ahead.span == kNoSpan ? kNoTime : std::min(ahead.ready_ns, left);
      if (until != kNoTime && until > ready) {
        const auto waited = static_cast<double>(until - ready);
        result.waited_ns += waited;
        result.longest_ns = std::max(result.longest_ns, waited);
        ++waiting_commands;
        const std::uint32_t command = timeline.spans[ahead.span].command;
        HeadOfLine::Blocker& blocker = blockers[command];
        blocker.command = command;
        blocker.stream = ahead.stream;
        blocker.caused_ns += waited;
      }
      front.add({left, static_cast<std::uint32_t>(span - timeline.spans.data()), span->stream});
    }
    all_commands += static_cast<double>(spans.size());
  }
  const auto count = static_cast<double>(iterations.size());
  result.waited_ns /= count;
  result.commands = static_cast<std::size_t>(std::lround(waiting_commands / count));
  result.total = static_cast<std::size_t>(std::lround(all_commands / count));
  for (auto& [command, blocker] : blockers) {
    blocker.caused_ns /= count;
    result.blockers.push_back(blocker);
  }
  std::stable_sort(result.blockers.begin(), result.blockers.end(),
                   [](const auto& a, const auto& b) { return a.caused_ns > b.caused_ns; });
  if (result.blockers.size() > kMaxBlockers) result.blockers.resize(kMaxBlockers);
  return result;
}

}  // namespace weir
