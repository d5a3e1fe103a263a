#include "run/outside_trace.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/error.h"

namespace weir {
namespace {

// The profiler's clock as read in this process, where rocprofv3 has loaded the library. Empty with a reason.
std::optional<ClockFix> rocprofiler_fix(std::string* reason) {
  void* library = nullptr;
  for (const char* const name : {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0", "librocprofiler-sdk.so"})
    if (library == nullptr) library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return *reason = "rocprofv3 did not load librocprofiler-sdk into the process", std::nullopt;
  // rocprofiler_status_t rocprofiler_get_timestamp(rocprofiler_timestamp_t*), the same in all versions.
  const auto read = reinterpret_cast<int (*)(std::uint64_t*)>(::dlsym(library, "rocprofiler_get_timestamp"));
  if (read == nullptr) return *reason = "librocprofiler-sdk lacks rocprofiler_get_timestamp", std::nullopt;
  std::optional<ClockFix> best;
  for (int i = 0; i < 20; ++i) {
    std::uint64_t theirs = 0;
    const std::int64_t before = now_ns();
    if (const int status = read(&theirs); status != 0)
      return *reason = fmt::format("rocprofiler_get_timestamp fails with status {}", status), std::nullopt;
    const std::int64_t after = now_ns();
    const double error = static_cast<double>(after - before) / 2;
    if (!best || error < best->error_ns)
      best = {static_cast<std::int64_t>(theirs), before + (after - before) / 2, error};
  }
  return best;
}

// One span: a list, because there may be 400,000 of them.
Json span_json(const Span& span, const Timeline& timeline) {
  const Json thread = span.call == kNoCall ? Json() : Json(timeline.calls[span.call].thread);
  return Json::array({span.iteration, span.command, time_or_null(span.enqueued_ns), time_or_null(span.submitted_ns),
                      time_or_null(span.accepted_ns), time_or_null(span.started_ns), time_or_null(span.ended_ns),
                      thread});
}

std::int64_t time_in(const Json& json) { return json.is_null() ? kNoTime : json.get<std::int64_t>(); }

void read_span(const Json& json, const Step& step, const Placement& placement, Timeline& timeline) {
  const auto command = json.at(1).get<std::uint32_t>();
  if (command >= step.commands().size()) throw JsonError("a command that the step does not have");
  Span span = untimed_span(step, placement, command, json.at(0).get<std::uint32_t>());
  span.enqueued_ns = time_in(json.at(2));
  span.submitted_ns = time_in(json.at(3));
  span.accepted_ns = time_in(json.at(4));
  span.started_ns = time_in(json.at(5));
  span.ended_ns = time_in(json.at(6));
  if (!json.at(7).is_null()) {
    span.call = static_cast<std::uint32_t>(timeline.calls.size());
    HostCall call;
    call.thread = json.at(7).get<std::uint32_t>();
    timeline.calls.push_back(call);
  }
  timeline.spans.push_back(span);
}

bool is_host(const Step& step, const Span& span) { return step.commands()[span.command].kind == CommandKind::host; }

std::uint32_t thread_of(const Span& span, const Timeline& timeline) { return timeline.calls[span.call].thread; }

// "queue 16" is 16: the profiler's own number.
std::int32_t queue_number(const Timeline& records, std::int32_t id) {
  constexpr std::string_view kWord = "queue ";
  for (const TraceQueue& queue : records.queues) {
    if (queue.id != id || !queue.label.starts_with(kWord)) continue;
    std::int32_t number = 0;
    const char* const end = queue.label.data() + queue.label.size();
    const auto read = std::from_chars(queue.label.data() + kWord.size(), end, number);
    return read.ec == std::errc() && read.ptr == end && number >= 0 && number < kCopyQueues ? number : kNoQueue;
  }
  return kNoQueue;
}

bool is_copy(const Span& record) { return record.kind == SpanKind::copy || record.kind == SpanKind::memset; }

// One command while its records are looked for.
struct Sought {
  std::uint32_t span = 0;
  std::vector<std::uint32_t> records;
  bool lacks_record = false;  // one of its launches or copies has none
};

struct Join {
  Join(OutsidePass& outside, const Timeline& records, const Step& step)
      : timeline(outside.pass.timeline),
        records(records),
        step(step),
        clock(outside.fixes.front(), outside.fixes.back()) {}

  void collect() {
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i)
      if (const Span& span = timeline.spans[i];
          !is_host(step, span) && span.call != kNoCall && span.submitted_ns != kNoTime)
        by_thread[thread_of(span, timeline)].push_back({i, {}, false});
    for (auto& [thread, commands] : by_thread)
      std::sort(commands.begin(), commands.end(), [&](const Sought& a, const Sought& b) {
        return timeline.spans[a.span].submitted_ns < timeline.spans[b.span].submitted_ns;
      });
    std::vector<std::vector<std::uint32_t>> by_call(records.calls.size());
    for (std::uint32_t i = 0; i < records.spans.size(); ++i)
      if (records.spans[i].call != kNoCall) by_call[records.spans[i].call].push_back(i);
    for (std::size_t i = 0; i < by_call.size(); ++i) assign(records.calls[i], by_call[i]);
  }

  // The middle of a call lies within the time in which its command was submitted, whatever the clocks' small error.
  void assign(const HostCall& call, const std::vector<std::uint32_t>& found) {
    if (call.started_ns == kNoTime || call.ended_ns == kNoTime) return;
    const auto commands = by_thread.find(call.thread);
    const bool submits = call.kind == CallKind::launch || call.kind == CallKind::copy;
    if (commands == by_thread.end() || (found.empty() && !submits)) return;
    const std::int64_t middle = clock.host_time(call.started_ns + (call.ended_ns - call.started_ns) / 2);
    const auto after = std::upper_bound(
        commands->second.begin(), commands->second.end(), middle,
        [&](std::int64_t at, const Sought& sought) { return at < timeline.spans[sought.span].submitted_ns; });
    if (after == commands->second.begin()) return;  // before the pass
    Sought& sought = *(after - 1);
    if (middle > timeline.spans[sought.span].accepted_ns) {
      if (after != commands->second.end() && !found.empty()) ++strays;
      return;
    }
    if (found.empty()) {
      sought.lacks_record = true;
    } else {
      sought.records.insert(sought.records.end(), found.begin(), found.end());
    }
  }

  void fill() {
    for (auto& [thread, commands] : by_thread)
      for (const Sought& sought : commands) fill(sought);
  }

  void fill(const Sought& sought) {
    Span& span = timeline.spans[sought.span];
    ++commands;
    if (sought.records.empty() || sought.lacks_record) return void(++missing);
    const bool is_kernel = step.commands()[span.command].kind == CommandKind::kernel;
    const Span* last = nullptr;
    bool has_kernel = false;
    std::int64_t started = INT64_MAX, ended = INT64_MIN;
    for (const std::uint32_t index : sought.records) {
      const Span& record = records.spans[index];
      has_kernel |= !is_copy(record);
      started = std::min(started, record.started_ns);
      ended = std::max(ended, record.ended_ns);
      if (last == nullptr || record.started_ns > last->started_ns) last = &record;
    }
    if (is_kernel && !has_kernel) return void(++of_another_kind);
    span.started_ns = clock.host_time(started);
    span.ended_ns = clock.host_time(ended);
    // A copy engine's queue is not recorded; a copy that a kernel makes has that kernel's.
    for (const std::uint32_t index : sought.records)
      if (span.queue == kNoQueue && records.spans[index].queue != kNoQueue)
        span.queue = queue_number(records, records.spans[index].queue);
    if (sought.records.size() > 1) span.launched_ns = clock.host_time(last->started_ns);
  }

  // A stream is in order: records that are not cannot be its commands'.
  void check_order() {
    std::map<std::uint16_t, std::vector<Span*>> streams;
    for (Span& span : timeline.spans)
      if (!is_host(step, span) && span.started_ns != kNoTime) streams[span.stream].push_back(&span);
    for (auto& [stream, spans] : streams) {
      std::sort(spans.begin(), spans.end(),
                [](const Span* a, const Span* b) { return a->submitted_ns < b->submitted_ns; });
      if (std::is_sorted(spans.begin(), spans.end(),
                         [](const Span* a, const Span* b) { return a->started_ns < b->started_ns; }))
        continue;
      ++unordered;
      for (Span* span : spans) forget(*span);
    }
  }

  static void forget(Span& span) {
    span.queue = kNoQueue;
    span.started_ns = span.ended_ns = span.launched_ns = kNoTime;
  }

  Timeline& timeline;
  const Timeline& records;
  const Step& step;
  const ClockMap clock;
  std::map<std::uint32_t, std::vector<Sought>> by_thread;
  std::uint64_t commands = 0, missing = 0, of_another_kind = 0, strays = 0, unordered = 0;
};

// describe_timeline() adds those that readers see.
void forget_calls(Timeline& timeline) {
  timeline.calls.clear();
  for (Span& span : timeline.spans) span.call = kNoCall;
}

}  // namespace

OutsidePass run_outside_pass(Device& device, const BuiltRun& built, int iterations, const RunControl& control,
                             std::span<const std::string> roles) {
  OutsidePass outside;
  const auto add_fix = [&] {
    if (const auto fix = rocprofiler_fix(&outside.no_clock)) outside.fixes.push_back(*fix);
  };
  add_fix();
  outside.pass =
      run_traced_pass(device, built.step, built.placement, built.submit, TraceSchedule(iterations), control, roles);
  add_fix();
  if (!outside.no_clock.empty()) outside.fixes.clear();
  return outside;
}

Json to_json(const OutsidePass& outside) {
  const Timeline& timeline = outside.pass.timeline;
  Json json = Json::object();
  Json spans = Json::array(), rounds = Json::array(), fixes = Json::array();
  for (const Span& span : timeline.spans) spans.push_back(span_json(span, timeline));
  for (const TracedPass::Round& round : outside.pass.rounds)
    rounds.push_back(Json::array({round.iteration, round.begun_ns, round.seen_ns}));
  for (const ClockFix& fix : outside.fixes) fixes.push_back(Json::array({fix.device_ns, fix.host_ns, fix.error_ns}));
  json["spans"] = std::move(spans);
  json["rounds"] = std::move(rounds);
  json["fixes"] = std::move(fixes);
  json["no_clock"] = outside.no_clock;
  return json;
}

OutsidePass outside_pass(const Json& document, const Step& step, const Placement& placement) {
  OutsidePass outside;
  try {
    for (const Json& span : document.at("spans")) read_span(span, step, placement, outside.pass.timeline);
    for (const Json& round : document.at("rounds")) {
      outside.pass.rounds.push_back(
          {round.at(0).get<std::uint32_t>(), round.at(1).get<std::int64_t>(), round.at(2).get<std::int64_t>()});
      const TracedPass::Round& last = outside.pass.rounds.back();
      outside.pass.latency_ns.push_back(static_cast<double>(last.seen_ns - last.begun_ns));
    }
    for (const Json& fix : document.at("fixes"))
      outside.fixes.push_back({fix.at(0).get<std::int64_t>(), fix.at(1).get<std::int64_t>(), fix.at(2).get<double>()});
    outside.no_clock = document.at("no_clock").get<std::string>();
  } catch (const JsonError& error) {
    fail(fmt::format("what the traced process noted cannot be read: {}", error.what()));
  }
  return outside;
}

bool has_calls_of(const Timeline& records, const OutsidePass& outside) {
  std::set<std::uint32_t> threads;
  for (const HostCall& call : outside.pass.timeline.calls) threads.insert(call.thread);
  return std::any_of(records.calls.begin(), records.calls.end(),
                     [&](const HostCall& call) { return threads.contains(call.thread); });
}

bool has_device_times(const Timeline& timeline, const Step& step) {
  return std::any_of(timeline.spans.begin(), timeline.spans.end(),
                     [&](const Span& span) { return !is_host(step, span) && span.started_ns != kNoTime; });
}

void join_records(OutsidePass& outside, const Timeline& records, const Step& step, const std::string& profiler) {
  Timeline& timeline = outside.pass.timeline;
  timeline.has_exact_gaps = true;
  timeline.source = fmt::format("records of {} around a process of its own", profiler);
  if (outside.fixes.empty()) {
    timeline.source += fmt::format("; commands have no times, because the clocks cannot be related: {}",
                                   outside.no_clock.empty() ? "no moment is known on both" : outside.no_clock);
    return forget_calls(timeline);
  }
  Join join(outside, records, step);
  join.collect();
  if (join.strays > 0) {
    timeline.source += fmt::format(
        "; commands have no times, because {} calls with records lie between the calls of the commands", join.strays);
  } else {
    join.fill();
    join.check_order();
    if (join.missing > 0)
      timeline.source +=
          fmt::format("; {} of {} commands have no times, because records are missing", join.missing, join.commands);
    if (join.of_another_kind > 0)
      timeline.source +=
          fmt::format("; {} have no times, because their records are of another kind", join.of_another_kind);
    if (join.unordered > 0)
      timeline.source += fmt::format(
          "; the commands of {} streams have no times, because their records are not in order", join.unordered);
  }
  timeline.clock_error_ns = join.clock.error_ns();
  // Nothing starts before it is submitted.
  for (const Span& span : timeline.spans)
    if (span.started_ns != kNoTime && span.submitted_ns != kNoTime)
      timeline.clock_error_ns =
          std::max(timeline.clock_error_ns, static_cast<double>(span.submitted_ns - span.started_ns));
  forget_calls(timeline);
}

}  // namespace weir
