#include "run/passes.h"

#include <algorithm>

#include "base/clock.h"

namespace weir {
namespace {

// All that a sample writes down; allocated before the first one.
struct Recorder {
  explicit Recorder(std::size_t iterations) : begun(iterations), submitted(iterations), ended(iterations) {}
  std::vector<std::int64_t> begun, submitted, ended;
};

void warm_up(Session& session, Submitter& submitter, const RunRequest& request, const RunControl& control) {
  for (int i = 0; i < request.warmup && !control.is_stopped(); ++i) {
    session.begin_iteration();
    submitter.submit_step();
    if (request.sync == SyncMode::per_iteration) session.finish();
    if (control.progress) control.progress("warm-up", i + 1, request.warmup);
  }
  if (request.sync != SyncMode::none) {
    session.finish();
    session.take_spans();
  }
}

}  // namespace

TimedPass run_timed_pass(Device& device, Session& session, Submitter& submitter, const RunRequest& request,
                         const RunControl& control) {
  const auto wanted = static_cast<std::size_t>(request.iterations);
  const bool waits_each = request.sync == SyncMode::per_iteration;
  TimedPass pass;
  pass.sync = request.sync;
  Recorder recorder(wanted);
  warm_up(session, submitter, request, control);
  pass.before = device.telemetry();
  std::int64_t reported_ns = now_ns();
  std::size_t done = 0;
  while (done < wanted && (done == 0 || !control.is_stopped())) {
    const std::int64_t begun = now_ns();
    session.begin_iteration();
    submitter.submit_step();
    const std::int64_t submitted = now_ns();
    if (waits_each) session.finish();
    const std::int64_t ended = now_ns();
    recorder.begun[done] = begun;
    recorder.submitted[done] = submitted;
    recorder.ended[done] = ended;
    ++done;
    // Between samples, and rarely: a terminal is slow.
    if (control.progress && ended - reported_ns > 100'000'000) {
      control.progress("measure", static_cast<int>(done), request.iterations);
      reported_ns = now_ns();
    }
  }
  session.finish();
  const std::int64_t drained = now_ns();
  pass.after = device.telemetry();
  pass.is_interrupted = done < wanted;
  pass.total_ns = static_cast<double>(drained - recorder.begun[0]);

  const std::vector<IterationSpan> all_spans = session.take_spans();
  // In mode `none` the warm-up's spans come first.
  const std::size_t skipped = all_spans.size() > done ? all_spans.size() - done : 0;
  const std::span<const IterationSpan> spans = std::span(all_spans).subspan(skipped);
  for (std::size_t i = 0; i < done; ++i) {
    pass.submit_ns.push_back(static_cast<double>(recorder.submitted[i] - recorder.begun[i]));
    if (waits_each) {
      pass.latency_ns.push_back(static_cast<double>(recorder.ended[i] - recorder.begun[i]));
      const std::int64_t next = i + 1 < done ? recorder.begun[i + 1] : recorder.ended[i];
      pass.interval_ns.push_back(static_cast<double>(next - recorder.begun[i]));
    }
  }
  for (const IterationSpan& span : spans)
    pass.device_ns.push_back(static_cast<double>(span.ended_ns - span.started_ns));
  if (!waits_each) {
    if (!spans.empty()) {
      for (std::size_t i = 1; i < spans.size(); ++i)
        pass.interval_ns.push_back(
            static_cast<double>(std::max<std::int64_t>(1, spans[i].ended_ns - spans[i - 1].ended_ns)));
    } else {
      for (std::size_t i = 1; i < done; ++i)
        pass.interval_ns.push_back(static_cast<double>(recorder.submitted[i] - recorder.submitted[i - 1]));
    }
  }
  pass.memory = session.memory();
  if (control.progress) control.progress("measure", static_cast<int>(done), request.iterations);
  return pass;
}

TracedPass run_traced_pass(Device& device, const Step& step, const Placement& placement, const SubmitChoice& submit,
                           int iterations) {
  SessionOptions options;
  options.mode = submit.mode;
  options.is_traced = true;
  options.trace_iterations = iterations + 1;
  const auto session = device.prepare(step, placement, options);
  const auto submitter = make_submitter(submit, step, placement, *session);
  TracedPass pass;
  for (int i = 0; i <= iterations; ++i) {
    const std::int64_t begun = now_ns();
    session->begin_iteration();
    submitter->submit_step();
    session->finish();
    if (i > 0) pass.latency_ns.push_back(static_cast<double>(now_ns() - begun));
  }
  pass.timeline = session->timeline();
  std::erase_if(pass.timeline.spans, [](const Span& span) { return span.iteration == 0; });
  return pass;
}

}  // namespace weir
