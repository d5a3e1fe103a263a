#include "lab/conformance/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "kernel/difference.h"

namespace weir::conformance {
namespace {

double value_at(ElementType type, std::span<const std::byte> bytes, std::size_t element) {
  if (type == ElementType::i32) return reinterpret_cast<const std::int32_t*>(bytes.data())[element];
  return with_float_type(
      type, [&]<class T>(T*) -> double { return to_float(reinterpret_cast<const T*>(bytes.data())[element]); });
}

std::string describe(const Step& step, BufferId id) {
  const Buffer& buffer = step.buffers()[id];
  return fmt::format("buffer {} ({} x {}, {} memory)", id, buffer.count, name_of(buffer.type),
                     buffer.place == Place::host ? "host" : "device");
}

std::string describe(const Step& step, CommandId id, std::size_t operand, const Difference& difference,
                     double tolerance) {
  const Command& command = step.commands()[id];
  const std::string_view name = command.kind == CommandKind::copy ? "copy" : kernel(command.kernel).name;
  const std::string share =
      tolerance > 0 ? fmt::format("{:.3g} times the tolerance {:.3g}", difference.error / tolerance, tolerance)
                    : "it must be equal";
  return fmt::format("{}, operand {}, element {}: {} instead of {}; error {:.3g}, {}", name, operand,
                     difference.element, difference.got, difference.expected, difference.error, share);
}

}  // namespace

std::string difference_of(const Step& step, const Contents& got, const Contents& expected) {
  for (BufferId id = 0; id < step.buffers().size(); ++id) {
    if (got[id] == expected[id]) continue;
    const Buffer& buffer = step.buffers()[id];
    const std::size_t size = size_of(buffer.type);
    std::size_t first = buffer.count, differing = 0;
    for (std::size_t e = 0; e < buffer.count; ++e) {
      if (std::memcmp(got[id].data() + e * size, expected[id].data() + e * size, size) == 0) continue;
      first = std::min(first, e);
      ++differing;
    }
    return fmt::format("{}: {} of its elements differ, the first is {}: {} instead of {}", describe(step, id),
                       differing, first, value_at(buffer.type, got[id], first),
                       value_at(buffer.type, expected[id], first));
  }
  return {};
}

std::string output_problem(const Step& step, const Contents& got) {
  const Contents initial = initial_contents(step);
  Contents outside = got;  // bytes that no command writes, once written parts are restored
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    const Command& command = step.commands()[id];
    const auto accesses = step.accesses(id);
    std::vector<std::vector<std::byte>> operands;
    for (const Access& access : accesses) {
      const std::vector<std::byte>& from = access.writes ? initial[access.buffer] : got[access.buffer];
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(access.offset_bytes);
      operands.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(access.size_bytes));
    }
    double natural = 0, tolerance = 0;
    if (command.kind == CommandKind::copy) {
      operands[1] = operands[0];
    } else {
      const Kernel& body = kernel(command.kernel);
      KernelCall call{command.shape, {}};
      for (std::size_t i = 0; i < operands.size(); ++i) call.operands[i] = operands[i].data();
      if (body.scale != nullptr) natural = body.scale(call);
      if (!std::isfinite(natural)) natural = 0;
      tolerance = body.tolerance(command.shape);
      body.reference(call);
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Access& access = accesses[i];
      if (!access.writes) continue;
      const std::span part(got[access.buffer].data() + access.offset_bytes, access.size_bytes);
      const Difference difference = compare_elements(step.buffers()[access.buffer].type, part, operands[i], natural);
      if (difference.error > tolerance) return describe(step, id, i, difference, tolerance);
      std::memcpy(outside[access.buffer].data() + access.offset_bytes,
                  initial[access.buffer].data() + access.offset_bytes, access.size_bytes);
    }
  }
  const std::string written_outside = difference_of(step, outside, initial);
  return written_outside.empty() ? "" : "what no command writes has changed: " + written_outside;
}

CaseOutcome same_as_reference(Subject& subject, const Step& step) {
  const Placement placement = natural(step);
  const Contents got = run(subject.device, step, placement, {});
  const std::string problem = output_problem(step, got);
  if (subject.cpu == nullptr) return problem.empty() ? passed() : failed(problem);
  const Contents on_cpu = run(*subject.cpu, step, placement, {});
  const std::string of_cpu = output_problem(step, on_cpu);
  if (!problem.empty())
    return failed(problem + (of_cpu.empty() ? "; cpu agrees with the reference" : "; so is cpu: " + of_cpu));
  if (!of_cpu.empty()) return failed("it agrees with the reference and cpu does not: " + of_cpu);
  // For a single command, errors relative to each other are at most twice those relative to the reference.
  if (step.commands().size() != 1 || step.commands()[0].kind == CommandKind::copy) return passed();
  const Command& command = step.commands()[0];
  const double tolerance = 2.5 * kernel(command.kernel).tolerance(command.shape);
  const auto accesses = step.accesses(0);
  KernelCall call{command.shape, {}};
  Contents inputs = initial_contents(step);
  for (std::size_t i = 0; i < accesses.size(); ++i)
    call.operands[i] = inputs[accesses[i].buffer].data() + accesses[i].offset_bytes;
  const auto scale = kernel(command.kernel).scale;
  double natural = scale == nullptr ? 0 : scale(call);
  if (!std::isfinite(natural)) natural = 0;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (!access.writes) continue;
    const Difference difference =
        compare_elements(step.buffers()[access.buffer].type,
                         std::span(got[access.buffer]).subspan(access.offset_bytes, access.size_bytes),
                         std::span(on_cpu[access.buffer]).subspan(access.offset_bytes, access.size_bytes), natural);
    if (difference.error > tolerance)
      return failed("it differs from cpu: " + describe(step, 0, i, difference, tolerance));
  }
  return passed();
}

CaseOutcome same_buffers(Subject& subject, const Step& step, const Placement& placement, const RunChoice& choice) {
  if (subject.info.is_virtual) return consistent_timeline(subject, step, placement, choice);
  if (!subject.info.computes) {
    const SubmitChoice submit = parse_submit(choice.submit, placement.stream_count);
    const auto session = subject.device.prepare(step, placement, options_of(submit, choice.is_pipelined));
    iterate(*session, *make_submitter(submit, step, placement, *session), choice);
    return passed();
  }
  const Contents expected = reference(step, choice.iterations);
  const std::string difference = difference_of(step, run(subject.device, step, placement, choice), expected);
  if (difference.empty()) return passed();
  std::string what =
      fmt::format("{} ({}{}, {} on {} streams, {} iterations", difference, choice.submit,
                  choice.is_pipelined ? ", pipelined" : "", placement.name, placement.stream_count, choice.iterations);
  if (subject.cpu != nullptr)
    what += run(*subject.cpu, step, placement, choice) == expected ? "; cpu is right" : "; cpu is wrong too";
  return failed(what + ")");
}

TimelineFacts facts_of(const Subject& subject, const RunChoice& choice) {
  return {choice.is_pipelined, static_cast<std::size_t>(choice.iterations),
          subject.info.is_virtual || subject.cpu == nullptr};
}

std::string timeline_problem(const Step& step, const Placement& placement, const Timeline& timeline,
                             const TimelineFacts& facts) {
  const std::size_t count = step.commands().size();
  std::map<std::uint32_t, std::vector<const Span*>> iterations;
  for (const Span& span : timeline.spans) {
    if (span.command >= count) return fmt::format("there is no command {}", span.command);
    std::vector<const Span*>& of_iteration = iterations.try_emplace(span.iteration, count).first->second;
    if (std::exchange(of_iteration[span.command], &span) != nullptr)
      return fmt::format("command {} is there twice in iteration {}", span.command, span.iteration);
  }
  if (iterations.size() < facts.iterations)
    return fmt::format("it holds {} iterations of {}", iterations.size(), facts.iterations);
  // Times from events are two floats of milliseconds, and engines of one GPU stamp with their own clocks: a kernel
  // seemed to start 1.4 us before the preceding copy had ended (H200, CUPTI 13.0, 2026-11). Host functions are on the
  // host's clock.
  const std::int64_t slack_ns = facts.is_exact ? 0 : 2000;
  const std::int64_t host_slack_ns = facts.is_exact ? 0 : 200'000 + static_cast<std::int64_t>(timeline.clock_error_ns);
  const auto is_host = [&](CommandId id) {
    const CommandKind kind = step.commands()[id].kind;
    const auto is_hosts = [&](const Access& access) { return step.buffers()[access.buffer].place == Place::host; };
    return kind == CommandKind::host || (kind == CommandKind::copy && std::ranges::all_of(step.accesses(id), is_hosts));
  };
  const auto breaks = [&](const Span& before, const Span& after) {
    return before.ended_ns >
           after.started_ns + (is_host(before.command) != is_host(after.command) ? host_slack_ns : slack_ns);
  };
  const auto text = [&](const char* why, const Span& before, const Span& after) {
    return fmt::format("command {} of iteration {} starts {} ns before command {} of iteration {} ends, {}",
                       after.command, after.iteration, before.ended_ns - after.started_ns, before.command,
                       before.iteration, why);
  };
  const std::vector<const Span*>* previous = nullptr;
  std::uint32_t previous_iteration = 0;
  for (const auto& [iteration, spans] : iterations) {
    const bool follows = previous != nullptr && previous_iteration + 1 == iteration;
    std::vector<const Span*> last_of_stream(static_cast<std::size_t>(placement.stream_count), nullptr);
    for (CommandId id = 0; id < count; ++id) {
      if (spans[id] == nullptr) return fmt::format("command {} of iteration {} is missing", id, iteration);
      const Span& span = *spans[id];
      if (span.started_ns == kNoTime || span.ended_ns == kNoTime || span.ended_ns < span.started_ns)
        return fmt::format("command {} of iteration {} starts at {} and ends at {}", id, iteration, span.started_ns,
                           span.ended_ns);
      if (span.stream != placement.stream_of[id])
        return fmt::format("command {} is on stream {} instead of {}", id, span.stream, placement.stream_of[id]);
      for (const CommandId before : step.predecessors(id))
        if (breaks(*spans[before], span)) return text("which it depends on", *spans[before], span);
      if (follows && facts.is_pipelined)
        for (const CommandId before : step.carried(id))
          if (breaks(*(*previous)[before], span)) return text("which it depends on", *(*previous)[before], span);
      const Span*& last = last_of_stream[span.stream];
      if (last != nullptr && breaks(*last, span)) return text("on the same stream", *last, span);
      last = &span;
    }
    previous = &spans;
    previous_iteration = iteration;
  }
  return {};
}

CaseOutcome consistent_timeline(Subject& subject, const Step& step, const Placement& placement,
                                const RunChoice& choice) {
  const SubmitChoice submit = parse_submit(choice.submit, placement.stream_count);
  SessionOptions options = options_of(submit, choice.is_pipelined);
  options.is_traced = true;
  options.trace_iterations = choice.iterations;
  const auto session = subject.device.prepare(step, placement, options);
  iterate(*session, *make_submitter(submit, step, placement, *session), choice);
  if (subject.info.computes) {
    const std::string wrong = difference_of(step, read_all(*session, step), reference(step, choice.iterations));
    if (!wrong.empty()) return failed("traced, it computes something else: " + wrong);
  }
  const Timeline timeline = session->timeline();
  if (timeline.source.empty()) return failed("the timeline does not say where its times come from");
  // Without a profiler, the commands of a graph are not visible.
  const bool may_be_empty = !subject.info.runs() || submit.mode == SubmitMode::graph;
  if (timeline.spans.empty() && may_be_empty) return passed();
  const std::string problem = timeline_problem(step, placement, timeline, facts_of(subject, choice));
  return problem.empty() ? passed() : failed(fmt::format("{} ({})", problem, timeline.source));
}

CaseOutcome many_iterations(Subject& subject, const std::string& submit, int iterations) {
  const Step step = random_step(3, 4);
  const Placement placement = natural(step);
  const SubmitChoice choice = parse_submit(submit, 4);
  const auto session = subject.device.prepare(step, placement, options_of(choice, true));
  const auto submitter = make_submitter(choice, step, placement, *session);
  iterate(*session, *submitter, {.submit = submit, .is_pipelined = true, .iterations = iterations});
  const std::vector<IterationSpan> spans = session->take_spans();
  if (subject.info.runs() && spans.size() != static_cast<std::size_t>(iterations))
    return failed(fmt::format("{} iterations have {} spans", iterations, spans.size()));
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].started_ns == kNoTime || spans[i].ended_ns < spans[i].started_ns)
      return failed(fmt::format("iteration {} starts at {} and ends at {}", i, spans[i].started_ns, spans[i].ended_ns));
    if (i > 0 && spans[i].ended_ns < spans[i - 1].ended_ns)
      return failed(fmt::format("iteration {} ends {} ns before the one before it", i,
                                spans[i - 1].ended_ns - spans[i].ended_ns));
  }
  if (!session->take_spans().empty()) return failed("spans that were taken come again");
  if (!subject.info.computes) return passed();
  const std::string difference = difference_of(step, read_all(*session, step), reference(step, iterations));
  return difference.empty() ? passed() : failed(difference);
}

}  // namespace weir::conformance
