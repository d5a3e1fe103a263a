// Time by module, phase, shape and step: known cases, and sums of random timelines, which must be exact.
#include "trace/analyse/model_use.h"

#include <gtest/gtest.h>

#include <random>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

Span launched(std::uint32_t call, std::int64_t submitted, std::int64_t started, std::int64_t ended) {
  Span span;
  span.name = 0;
  span.call = call;
  span.submitted_ns = submitted;
  span.started_ns = started;
  span.ended_ns = ended;
  return span;
}

HostCall made_by(std::uint32_t operation, std::int64_t started, std::int64_t ended) {
  HostCall call;
  call.kind = CallKind::launch;
  call.operation = operation;
  call.started_ns = started;
  call.ended_ns = ended;
  return call;
}

TEST(ModelUse, says_how_long_launching_took_and_how_long_the_device_waited_for_it) {
  Timeline timeline;
  timeline.has_operations = true;
  timeline.names = {"k", "aten::add"};
  timeline.operations = {{.name = 1}};
  timeline.calls = {made_by(0, 0, 10), made_by(0, 100, 130), made_by(0, 140, 150)};
  timeline.calls[0].is_first_of_operation = timeline.calls[2].is_first_of_operation = true;
  timeline.spans = {launched(0, 0, 5, 50), launched(1, 100, 120, 125),  // 50 idle until it was submitted
                    launched(2, 140, 160, 165), launched(2, 140, 166, 170)};
  timeline.spans[2].submitted_ns = 110;  // the host was ahead
  timeline.spans[3].submitted_ns = 110;
  const ModelUse found = model_use(timeline, {});
  ASSERT_EQ(found.shaped.size(), 1U) << found.reason;
  EXPECT_EQ(found.shaped[0].work.commands, 4U);
  EXPECT_EQ(found.shaped[0].calls, 2U) << "the first one called the driver twice";
  EXPECT_EQ(found.shaped[0].launching_ns, 10U + 30U + 10U);
  EXPECT_EQ(found.shaped[0].late_ns, 50U);
  EXPECT_TRUE(found.modules.empty());
  EXPECT_TRUE(found.steps.empty());
}

TEST(ModelUse, says_why_there_is_none) {
  Timeline timeline;
  EXPECT_NE(model_use(timeline, {}).reason.find("--operators"), std::string::npos);
  timeline.has_operations = true;
  timeline.spans = {launched(kNoCall, 0, 0, 1)};
  EXPECT_NE(model_use(timeline, {}).reason, "");
}

TEST(ModelUse, everything_adds_up) {
  std::mt19937_64 random(20261119);
  const auto below = [&](std::uint64_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int round = 0; round < 200; ++round) {
    Timeline timeline;
    timeline.has_operations = true;
    timeline.names = {"k"};
    const std::uint32_t modules = below(20), operations = 1 + below(10), calls = below(40);
    for (std::uint32_t i = 0; i < modules; ++i)
      timeline.modules.push_back({0, i == 0 || below(4) == 0 ? kNoModule : below(i)});
    for (std::uint32_t i = 0; i < operations; ++i) {
      Operation operation;
      if (below(4) != 0) operation.name = below(3);
      if (below(2) != 0) operation.shapes = below(3);
      if (modules > 0 && below(3) != 0) operation.module = below(modules);
      operation.phase = static_cast<Phase>(below(kPhases));
      timeline.operations.push_back(operation);
    }
    for (std::uint32_t i = 0; i < calls; ++i)
      timeline.calls.push_back(made_by(below(5) == 0 ? kNoOperation : below(operations), i, i + below(30)));
    std::uint64_t all_ns = 0;
    for (std::uint32_t i = 0, spans = below(100); i < spans; ++i) {
      const std::int64_t at = 10 * i;
      timeline.spans.push_back(
          launched(calls == 0 || below(6) == 0 ? kNoCall : below(calls), at - below(30), at, at + below(50)));
      if (below(5) == 0) timeline.spans.back().kind = static_cast<SpanKind>(below(5));
      if (is_device_work(timeline.spans.back()))
        all_ns += distance_ns(timeline.spans.back().started_ns, timeline.spans.back().ended_ns);
    }
    std::vector<TraceRange> steps;
    for (std::int64_t i = 0; i < below(4); ++i) steps.push_back({0, 0, 300 * i, 300 * i + 250});
    const ModelUse found = model_use(timeline, steps);
    if (!found.reason.empty()) continue;
    ASSERT_EQ(found.work.total_ns, all_ns) << "round " << round;
    std::uint64_t own = found.without_module.total_ns, phases = 0, in_steps = found.outside_steps.total_ns;
    std::uint64_t shaped = found.outside.total_ns + found.without_call.total_ns;
    std::vector<std::uint64_t> of_parts(found.modules.size());
    for (std::size_t i = 0; i < found.modules.size(); ++i) {
      const ModuleUse& module = found.modules[i];
      own += module.own.total_ns;
      std::uint64_t of_phases = 0;
      for (const std::uint64_t ns : module.phase_ns) of_phases += ns;
      EXPECT_EQ(of_phases, module.all.total_ns);
      if (module.parent == kNoModule) continue;
      ASSERT_LT(module.parent, i) << "parents come first";
      of_parts[module.parent] += module.all.total_ns;
    }
    for (std::size_t i = 0; i < found.modules.size(); ++i)
      EXPECT_EQ(found.modules[i].all.total_ns, found.modules[i].own.total_ns + of_parts[i]);
    for (const WorkSum& phase : found.phases) phases += phase.total_ns;
    for (const ShapedUse& use : found.shaped) shaped += use.work.total_ns;
    for (const StepUse& step : found.steps) in_steps += step.work.total_ns;
    EXPECT_EQ(own, all_ns);
    EXPECT_EQ(phases, all_ns);
    EXPECT_EQ(shaped, all_ns);
    if (!steps.empty()) {
      EXPECT_EQ(in_steps, all_ns);
    }
  }
}

}  // namespace
}  // namespace weir
