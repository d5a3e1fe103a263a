// What the step knows goes into the timeline: names, lanes, calls, waits, when the host saw the end. On the simulated
// device (every run the same) and on the cpu.
#include "run/describe_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/plan.h"
#include "run/profile.h"
#include "submit/submitter.h"
#include "trace/analyse/waterfall.h"
#include "trace/timeline_builder.h"

namespace weir {
namespace {

struct Described {
  BuiltRun built;
  TracedPass pass;
  DeviceInfo info;
};

Described described(const std::string& workload, const std::string& device_name, const std::string& submit_name,
                    int iterations = 3) {
  const auto device = open_device(device_name, {});
  RunRequest request;
  request.workload = workload;
  request.scale = Scale::tiny;
  request.submit = parse_submit(submit_name);
  Described made{build_run(device->info(), request), {}, device->info()};
  made.pass =
      run_traced_pass(*device, made.built.step, made.built.placement, made.built.submit, TraceSchedule(iterations), {});
  describe_timeline(made.pass, made.info, made.built.step, made.built.placement, made.built.submit, "a test");
  return made;
}

void expect_complete(const Described& made, int iterations) {
  const Timeline& timeline = made.pass.timeline;
  const Step& step = made.built.step;
  ASSERT_EQ(timeline.spans.size(), step.commands().size() * static_cast<std::size_t>(iterations));
  EXPECT_TRUE(std::is_sorted(timeline.spans.begin(), timeline.spans.end(),
                             [](const Span& a, const Span& b) { return a.started_ns < b.started_ns; }));
  for (const Span& span : timeline.spans) {
    ASSERT_LT(span.name, timeline.names.size());
    const Command& command = step.commands()[span.command];
    if (command.kind == CommandKind::kernel) {
      EXPECT_EQ(span.kind, SpanKind::kernel);
      EXPECT_EQ(timeline.names[span.name], kernel(command.kernel).name);
    }
    if (command.kind == CommandKind::copy) {
      EXPECT_EQ(span.kind, SpanKind::copy);
      EXPECT_EQ(span.bytes, step.accesses(span.command)[0].size_bytes);
      EXPECT_EQ(timeline.names[span.name].substr(0, 6), "Memcpy");
    }
    EXPECT_GE(span.seen_ns, span.ended_ns);
    ASSERT_LT(span.call, timeline.calls.size());
    EXPECT_EQ(timeline.calls[span.call].started_ns, span.submitted_ns);
    EXPECT_LT(span.stream, timeline.streams.size());
    if (span.queue != kNoQueue) {
      EXPECT_TRUE(std::any_of(timeline.queues.begin(), timeline.queues.end(),
                              [&](const TraceQueue& queue) { return queue.id == span.queue; }));
    }
  }
  EXPECT_EQ(timeline.ranges.size(), static_cast<std::size_t>(iterations));
  EXPECT_TRUE(timeline.has_dependencies);
  for (const Dependency& dependency : timeline.dependencies) {
    const Span &before = timeline.spans[dependency.before], &after = timeline.spans[dependency.after];
    EXPECT_EQ(before.iteration, after.iteration);
    EXPECT_NE(before.stream, after.stream);
    EXPECT_LE(before.ended_ns, after.started_ns);
    const auto all = step.predecessors(after.command);
    EXPECT_TRUE(std::find(all.begin(), all.end(), before.command) != all.end());
  }
}

TEST(DescribeTimeline, knows_every_command) {
  for (const char* device : {"sim:h200", "cpu"}) {
    for (const char* workload : {"hetero_kernels", "async_dataload", "moe"}) {
      SCOPED_TRACE(std::string(device) + " " + workload);
      expect_complete(described(workload, device, "inline"), 3);
    }
  }
}

TEST(DescribeTimeline, dependencies_are_the_waits_that_were_submitted) {
  const Described made = described("moe", "sim:h200", "inline", 2);
  const StepPlan plan = make_plan(made.built.step, made.built.placement, false);
  ASSERT_GT(plan.waits.size(), 0u);
  EXPECT_EQ(made.pass.timeline.dependencies.size(), 2 * plan.waits.size());
}

TEST(DescribeTimeline, threads_submit_by_themselves_and_graphs_by_one_call) {
  const Described threads = described("hetero_kernels", "sim:h200", "threads:2");
  std::set<std::uint32_t> seen;
  for (const HostCall& call : threads.pass.timeline.calls)
    if (call.kind == CallKind::launch) seen.insert(call.thread);
  EXPECT_EQ(seen.size(), 2u);
  const Described graph = described("hetero_kernels", "sim:h200", "graph");
  const auto& calls = graph.pass.timeline.calls;
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(), [](const auto& call) { return call.kind == CallKind::launch; }),
            3);
  for (const Span& span : graph.pass.timeline.spans) EXPECT_NE(span.call, kNoCall);
}

TEST(DescribeTimeline, channels_show_when_commands_were_enqueued) {
  for (const char* workload : {"hetero_kernels", "moe"}) {
    for (const char* submit : {"channel:mpsc:4", "channel:lanes:2", "channel:mutex_deque:2", "channel:mpsc:3x2"}) {
      SCOPED_TRACE(std::string(workload) + " " + submit);
      const Described made = described(workload, "cpu", submit);
      expect_complete(made, 3);
      for (const Span& span : made.pass.timeline.spans) {
        ASSERT_NE(span.enqueued_ns, kNoTime);
        EXPECT_LE(span.enqueued_ns, span.submitted_ns);
        const auto round = std::find_if(made.pass.rounds.begin(), made.pass.rounds.end(),
                                        [&](const auto& other) { return other.iteration == span.iteration; });
        ASSERT_NE(round, made.pass.rounds.end());
        EXPECT_GE(span.enqueued_ns, round->begun_ns);
      }
      const Waterfall way = waterfall(made.pass.timeline);
      ASSERT_FALSE(way.classes.empty());
      const Hop& hop = way.classes[0].hops.at(0);
      EXPECT_EQ(hop.from, Stage::enqueued);
      EXPECT_EQ(hop.to, Stage::submitted);
      EXPECT_EQ(hop.count, way.classes[0].commands);
      EXPECT_GT(hop.p50_ns, 0);
    }
  }
  for (const Span& span : described("hetero_kernels", "cpu", "threads:2").pass.timeline.spans)
    EXPECT_EQ(span.enqueued_ns, kNoTime);
}

TEST(DescribeTimeline, an_interrupted_pass_keeps_what_it_has) {
  const auto device = open_device("sim:h200", {});
  RunRequest request;
  request.workload = "hetero_kernels";
  request.scale = Scale::tiny;
  request.iterations = 5;
  const std::atomic<bool> stop{true};
  RunControl control;
  control.stop = &stop;
  const WorkloadProfile profile = profile_workload(*device, request, 50, {}, control);
  EXPECT_TRUE(profile.is_interrupted);
  EXPECT_EQ(profile.timeline.ranges.size(), 1u);
  EXPECT_EQ(profile.document["tracing"]["kept_iterations"], 1);
  EXPECT_GT(profile.document["devices"][0]["commands"].get<int>(), 0);
}

TEST(DescribeTimeline, virtual_time_is_not_perturbed_by_tracing) {
  const auto device = open_device("sim:h200", {});
  RunRequest request;
  request.workload = "hetero_kernels";
  request.iterations = 5;
  const Json document = profile_workload(*device, request, 5, {}, {}).document;
  EXPECT_EQ(document["schema"], "weir.profile/2");
  EXPECT_DOUBLE_EQ(document["tracing"]["cost_ns_per_command"].get<double>(), 0);
  EXPECT_DOUBLE_EQ(document["tracing"]["ratio"].get<double>(), 1);
  const Json& hops = document["devices"][0]["waterfall"][0]["hops"];
  ASSERT_FALSE(hops.empty());
  EXPECT_EQ(hops[0]["from"], "submitted");
  EXPECT_EQ(hops[hops.size() - 1]["to"], "seen");
}

}  // namespace
}  // namespace weir
