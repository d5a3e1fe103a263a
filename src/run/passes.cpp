#include "run/passes.h"

#include <algorithm>

#include "base/clock.h"

namespace weir {
namespace {

// Everything that a sample records; allocated before the first one.
struct Recorder {
  explicit Recorder(std::size_t iterations)
      : begun(iterations), submitted(iterations), ended(iterations), is_followed_by_output(iterations, 0) {}
  std::vector<std::int64_t> begun, submitted, ended;
  std::vector<std::uint8_t> is_followed_by_output;  // then the time to the next iteration is meaningless
};

// Whether another iteration follows. All ranks must do the same: they agree (and meet) if the host waits for each
// iteration; with pipelined ones collectives are in flight, so they run to the end.
bool goes_on(const RunControl& control, const RunRequest& request) {
  if (control.has_ranks() && request.sync != SyncMode::per_iteration) return true;
  return !control.agree_to_stop();
}

// Spans of the measured iterations whose times the device could read.
std::vector<IterationSpan> spans_of(Session& session, std::size_t measured, bool has_failed) {
  std::vector<IterationSpan> spans;
  try {
    spans = session.take_spans();
  } catch (const std::exception&) {
    if (!has_failed) throw;
    return {};  // lost with the rest
  }
  // In mode `none` the warm-up's spans come first.
  const std::size_t skipped = spans.size() > measured ? spans.size() - measured : 0;
  spans.erase(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(skipped));
  std::erase_if(spans,
                [](const IterationSpan& span) { return span.started_ns == kNoTime || span.ended_ns == kNoTime; });
  return spans;
}

}  // namespace

void warm_up(Session& session, Submitter& submitter, const RunRequest& request, const RunControl& control,
             SessionWatch* watch) {
  for (int i = 0; i < request.warmup && goes_on(control, request); ++i) {
    const SessionWatch::Inside inside(watch);
    session.begin_iteration();
    submitter.submit_step();
    if (request.sync == SyncMode::per_iteration) {
      session.finish();
      if (control.after_iteration) control.after_iteration(session);
    }
    if (control.progress) control.progress("warm-up", i + 1, request.warmup);
  }
  if (request.sync != SyncMode::none) {
    const SessionWatch::Inside inside(watch);
    session.finish();
    session.take_spans();
  }
}

TimedPass run_timed_pass(Device& device, Session& session, Submitter& submitter, const RunRequest& request,
                         const RunControl& control, SessionWatch* watch) {
  const auto wanted = static_cast<std::size_t>(request.iterations);
  const bool waits_each = request.sync == SyncMode::per_iteration;
  TimedPass pass;
  pass.sync = request.sync;
  Recorder recorder(wanted);
  // Reading telemetry takes a while: in mode `none` the queue must not run dry after the warm-up, so read it before.
  if (request.sync == SyncMode::none) pass.before = device.telemetry();
  if (control.has_ranks()) control.communicator->barrier();
  warm_up(session, submitter, request, control, watch);
  if (request.sync != SyncMode::none) pass.before = device.telemetry();
  if (control.has_ranks() && request.sync == SyncMode::end_only) control.communicator->barrier();
  const bool is_virtual = device.info().is_virtual;  // then output costs no session time
  std::int64_t reported_ns = now_ns();               // wall clock, even if the session's is virtual
  std::size_t done = 0;
  try {
    while (done < wanted) {
      if (!goes_on(control, request) && done > 0) break;
      std::optional<SessionWatch::Inside> inside(std::in_place, watch);
      session.begin_iteration();  // may read old spans, so the sample starts after this
      const std::int64_t begun = session.now_ns();
      submitter.submit_step();
      const std::int64_t submitted = session.now_ns();
      if (waits_each) session.finish();
      const std::int64_t ended = session.now_ns();
      recorder.begun[done] = begun;
      recorder.submitted[done] = submitted;
      recorder.ended[done] = ended;
      ++done;
      inside.reset();
      if (waits_each && control.after_iteration) {
        control.after_iteration(session);
        recorder.is_followed_by_output[done - 1] = is_virtual ? 0 : 1;
      }
      // Between samples, and rarely, because a terminal is slow.
      if (control.progress && now_ns() - reported_ns > 100'000'000) {
        control.progress("measure", static_cast<int>(done), request.iterations);
        recorder.is_followed_by_output[done - 1] = is_virtual ? 0 : 1;
        reported_ns = now_ns();
      }
    }
    const SessionWatch::Inside inside(watch);
    session.finish();
  } catch (const std::exception&) {
    if (done == 0) throw;
    pass.failure = std::current_exception();
  }
  const std::int64_t drained = session.now_ns();
  pass.after = device.telemetry();
  pass.is_interrupted = done < wanted;

  std::vector<IterationSpan> spans = spans_of(session, done, pass.failure != nullptr);
  if (pass.failure != nullptr && !waits_each) {
    // Only the device knows which iterations had ended, and it may no longer respond.
    if (spans.empty()) std::rethrow_exception(pass.failure);
    done = std::min(done, spans.size());
  }
  pass.iterations = done;
  const std::int64_t last = pass.failure != nullptr && waits_each ? recorder.ended[done - 1] : drained;
  pass.total_ns = static_cast<double>(last - recorder.begun[0]);
  for (std::size_t i = 0; i < done; ++i) {
    pass.submit_ns.push_back(static_cast<double>(recorder.submitted[i] - recorder.begun[i]));
    if (waits_each) {
      pass.latency_ns.push_back(static_cast<double>(recorder.ended[i] - recorder.begun[i]));
      const bool is_last = i + 1 == done || recorder.is_followed_by_output[i] != 0;
      const std::int64_t next = is_last ? recorder.ended[i] : recorder.begun[i + 1];
      pass.interval_ns.push_back(static_cast<double>(next - recorder.begun[i]));
    }
  }
  for (const IterationSpan& span : spans)
    pass.device_ns.push_back(static_cast<double>(span.ended_ns - span.started_ns));
  // Pipelined iterations: from end to end, the first from its own start, so that together they cover the whole window.
  // Streams may run ahead of each other; counting from the first end would omit the time in which the fast ones already
  // worked on later iterations, and overstate the throughput.
  if (!waits_each && !spans.empty()) {
    std::int64_t from = spans[0].started_ns;
    for (const IterationSpan& span : spans) {
      pass.interval_ns.push_back(static_cast<double>(std::max<std::int64_t>(1, span.ended_ns - from)));
      from = std::max(from, span.ended_ns);
    }
  } else if (!waits_each) {
    std::int64_t from = recorder.begun[0];
    for (std::size_t i = 0; i < done; ++i) {
      pass.interval_ns.push_back(static_cast<double>(recorder.submitted[i] - from));
      from = recorder.submitted[i];
    }
  }
  pass.memory = session.memory();
  if (control.progress) control.progress("measure", static_cast<int>(done), request.iterations);
  return pass;
}

TracedPass run_traced_pass(Device& device, const Step& step, const Placement& placement, const SubmitChoice& submit,
                           const TraceSchedule& schedule, const RunControl& control, std::span<const std::string> roles,
                           bool by_events) {
  SessionOptions options = submit.session_options();
  options.is_traced = true;
  options.marks_iterations = false;
  options.trace_iterations = schedule.iterations();
  options.traces_by_events = by_events;
  options.follows_progress |= control.wants_progress();
  const auto session = device.prepare(step, placement, options);
  const auto submitter = make_submitter(submit, step, placement, *session, options.trace_iterations);
  SessionWatch watch(control, device.info(), *session, step, placement, roles);
  TracedPass pass;
  for (int i = 0; i < options.trace_iterations; ++i) {
    const bool is_last = control.agree_to_stop();  // also a barrier
    if (is_last && !pass.rounds.empty()) break;
    const std::int64_t begun = session->now_ns();
    const SessionWatch::Inside inside(&watch);
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
    const std::int64_t seen = session->now_ns();
    if (control.after_iteration) control.after_iteration(*session);
    if (!schedule.keeps(i) && !is_last) continue;
    pass.latency_ns.push_back(static_cast<double>(seen - begun));
    pass.rounds.push_back({static_cast<std::uint32_t>(i), begun, seen});
    if (is_last) break;
  }
  pass.timeline = session->timeline();
  submitter->stamp(pass.timeline);
  std::erase_if(pass.timeline.spans, [&](const Span& span) {
    return !std::ranges::binary_search(pass.rounds, span.iteration, {}, &TracedPass::Round::iteration);
  });
  return pass;
}

}  // namespace weir
