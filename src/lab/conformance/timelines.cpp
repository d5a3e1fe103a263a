// Traced passes: every command once, in its stream's order, not before its dependencies; kernels of known duration take
// that long.
#include <fmt/format.h>

#include "lab/conformance/checks.h"
#include "lab/conformance/list.h"

namespace weir::conformance {
namespace {

// The most by which clocks may disagree: events have a resolution of half a microsecond.
constexpr std::int64_t kClockNs = 10'000;

CaseOutcome follows_edges(Subject& subject, std::uint64_t seed, const char* submit, bool is_pipelined) {
  const bool has_host = seed % 2 == 0 && subject.info.host_functions;
  const Step step = random_step(seed, 3, {.has_host = has_host});
  return consistent_timeline(subject, step, natural(step), {submit, is_pipelined, 3});
}

CaseOutcome known_duration(Subject& subject) {
  constexpr std::int64_t kSpinNs = 2'000'000;
  constexpr int kIterations = 5;
  StepBuilder builder(1);
  for (StreamId s = 0; s < 2; ++s)
    builder.launch("spin", {.stream = s}, {.dims = {kSpinNs, 1}}, {{builder.output(ElementType::f32, 1)}});
  const Step step = std::move(builder).seal(2);
  const Placement placement = natural(step);
  SessionOptions options;
  options.is_traced = true;
  options.trace_iterations = kIterations;
  const auto session = subject.device.prepare(step, placement, options);
  iterate(*session, *inline_submitter(step, *session), {.iterations = kIterations});
  for (const IterationSpan& span : session->take_spans())
    if (span.ended_ns - span.started_ns < kSpinNs - kClockNs)
      return failed(fmt::format("an iteration of {} ns took {}", kSpinNs, span.ended_ns - span.started_ns));
  const Timeline timeline = session->timeline();
  if (const std::string problem =
          timeline_problem(step, placement, timeline, facts_of(subject, {"inline", false, kIterations}));
      !problem.empty())
    return failed(problem);
  for (const Span& span : timeline.spans) {
    if (span.ended_ns - span.started_ns < kSpinNs - kClockNs)
      return failed(fmt::format("a kernel of {} ns took {}", kSpinNs, span.ended_ns - span.started_ns));
    if (span.submitted_ns != kNoTime &&
        static_cast<double>(span.submitted_ns) > static_cast<double>(span.started_ns) + timeline.clock_error_ns)
      return failed(fmt::format("a kernel started {} ns before it was submitted, and clocks may differ by {:.0f} ns",
                                span.submitted_ns - span.started_ns, timeline.clock_error_ns));
  }
  return passed();
}

// Iterations without commands have no time, and those beside them keep theirs.
CaseOutcome empty_iteration(Subject& subject) {
  const Step step = random_step(1, 2);
  const Placement placement = natural(step);
  const auto session = subject.device.prepare(step, placement, {});
  session->begin_iteration();
  session->finish();
  if (const auto spans = session->take_spans(); spans.size() != 1)
    return failed(fmt::format("one iteration has {} spans", spans.size()));
  else if (spans[0].started_ns != kNoTime || spans[0].ended_ns != kNoTime)
    return failed("an iteration without commands has a time");
  iterate(*session, *inline_submitter(step, *session), {});
  if (const auto spans = session->take_spans(); spans.size() != 1 || spans[0].ended_ns == kNoTime)
    return failed("an iteration after an empty one has no time");
  return passed();
}

}  // namespace

Cases timelines() {
  Cases cases;
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (const char* submit : {"inline", "threads:2"})
      for (const bool is_pipelined : {false, true})
        cases.push_back({"timelines",
                         fmt::format("edges/{}/{}{}", submit, seed, is_pipelined ? " pipelined" : ""),
                         {},
                         [=](Subject& subject) { return follows_edges(subject, seed, submit, is_pipelined); }});
  cases.push_back({"timelines",
                   "kernels of known duration",
                   {.runs = true, .kernel_clock = true},
                   known_duration,
                   "spin",
                   ElementType::f32});
  cases.push_back({"timelines", "iterations without commands", {.runs = true}, empty_iteration});
  return cases;
}

}  // namespace weir::conformance
