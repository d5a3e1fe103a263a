#include "run/analyze.h"

#include <algorithm>
#include <utility>

#include "device/rank/alone.h"
#include "run/analyze_exchange.h"
#include "run/analyze_trace.h"
#include "run/analyze_whole.h"
#include "trace/analyse/slice.h"
#include "trace/analyse/steady.h"

namespace weir {
namespace {

std::int64_t first_start(const Timeline& timeline) {
  std::int64_t first = INT64_MAX;
  for (const Span& span : timeline.spans)
    if (span.started_ns != kNoTime) first = std::min(first, span.started_ns);
  return first == INT64_MAX ? 0 : first;
}

}  // namespace

std::optional<TimeInterval> window_from(std::int64_t origin_ns, const std::optional<TimeInterval>& window,
                                        std::optional<std::int64_t> steady_ns) {
  if (window == kWholeTrace) return std::nullopt;
  // Times of a file may be near the limits.
  const auto later = [&](std::int64_t ns) { return origin_ns > INT64_MAX - ns ? INT64_MAX : origin_ns + ns; };
  if (window) return TimeInterval{later(window->from_ns), later(window->to_ns)};
  if (!steady_ns) return std::nullopt;
  return TimeInterval{*steady_ns, INT64_MAX};
}

std::optional<TimeInterval> window_in(const Timeline& timeline, const std::optional<TimeInterval>& window) {
  return window_from(first_start(timeline), window, window ? std::nullopt : steady_from(timeline));
}

Json analyze_traces(Communicator& ranks, TraceShare& share, const AnalyzeOptions& options) {
  TraceExchange exchange(ranks, share.numbers, share.total);
  std::vector<TraceAnalysis> own;
  for (ImportedTrace& trace : share.traces) own.emplace_back(trace, options, share.total > 1, share.keeps_traces);
  WholeAnalysis whole(options, share.total);

  // What each trace says, on rank 0.
  const auto ask = [&](auto say) {
    std::vector<std::string> texts;
    for (TraceAnalysis& trace : own) texts.push_back(say(trace));
    return exchange.gather(texts);
  };
  // The answer for each trace of this process: on rank 0 `answer` returns those of all.
  const auto reply = [&](auto answer) {
    std::vector<Json> answers;
    for (const std::string& text : exchange.scatter(exchange.is_first() ? answer() : std::vector<std::string>()))
      answers.push_back(parse_json(text, "a message between ranks"));
    return answers;
  };
  const auto outlines = [&] { return ask([](TraceAnalysis& trace) { return trace.outline_bytes(); }); };

  std::vector<std::string> said = ask([](TraceAnalysis& trace) { return trace.facts().dump(); });
  std::vector<Json> answers = reply([&, drawn = outlines()] { return whole.agree(said, drawn); });
  for (std::size_t i = 0; i < own.size(); ++i) own[i].agree(answers[i]);
  said = ask([](TraceAnalysis& trace) { return trace.times().dump(); });
  answers = reply([&] { return whole.start(said); });
  std::size_t next = 0;
  said = ask([&](TraceAnalysis& trace) { return trace.is_steady(answers[next++]).dump(); });
  answers = reply([&] { return whole.window(said); });
  next = 0;
  said = ask([&](TraceAnalysis& trace) { return trace.first_submitted(answers[next++]).dump(); });
  answers = reply([&] { return whole.submission(said); });
  for (std::size_t i = 0; i < own.size(); ++i) own[i].cut(answers[i]);
  said = ask([](TraceAnalysis& trace) { return trace.counts().dump(); });
  answers = reply([&, drawn = outlines()] { return whole.order(said, drawn); });
  next = 0;
  said = ask([&](TraceAnalysis& trace) { return trace.analyze(answers[next++]).dump(); });
  answers = reply([&] { return whole.ask_phases(std::move(said)); });
  next = 0;
  said = ask([&](TraceAnalysis& trace) { return trace.commands(answers[next++]).dump(); });
  return exchange.is_first() ? whole.document(said) : Json();
}

Json analyze_timeline(Timeline& timeline, const std::vector<ImportedFile>& files, const AnalyzeOptions& options) {
  AloneCommunicator alone;
  TraceShare share;
  share.total = 1;
  share.numbers = {0};
  share.keeps_traces = true;
  share.traces.push_back({files, std::move(timeline)});
  Json document = analyze_traces(alone, share, options);
  timeline = std::move(share.traces.front().timeline);
  timeline.notes.clear();
  for (const Json& note : document["notes"]) timeline.notes.push_back(note.get<std::string>());
  return document;
}

Timeline analysed_part(const Timeline& timeline, const Json& document) {
  const Json& window = document["window"];
  if (window.is_null()) return timeline;
  const std::int64_t origin_ns = first_start(timeline);
  return within(timeline,
                {origin_ns + window["begin_ns"].get<std::int64_t>(), origin_ns + window["end_ns"].get<std::int64_t>()});
}

}  // namespace weir
