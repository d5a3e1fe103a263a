// Submitting through a channel on a real GPU: the output is right, and the way of commands begins where they were
// enqueued. Skipped where there is none.
#include <gtest/gtest.h>

#include "device/gpu/cuda.h"
#include "device/gpu/gpu.h"
#include "run/describe_timeline.h"
#include "run/runner.h"
#include "submit/submitter.h"
#include "support/cuda_test.h"
#include "trace/analyse/waterfall.h"

namespace weir {
namespace {

class ChannelGpu : public CudaTest {};

TEST_F(ChannelGpu, every_workload_passes_its_check) {
  for (const Workload& workload : workloads()) {
    for (const char* submit : {"channel:mpsc:4", "channel:lanes:4", "channel:mpsc:4x4"}) {
      for (const SyncMode sync : {SyncMode::per_iteration, SyncMode::end_only}) {
        RunRequest request;
        request.workload = workload.name;
        request.scale = Scale::tiny;
        request.iterations = 10;
        request.warmup = 2;
        request.submit = parse_submit(submit);
        request.sync = sync;
        request.traces = false;
        const Result result = run_workload(device(), request, {}, {});
        EXPECT_EQ(result.status, "complete") << workload.name << " " << submit << ": " << result.failure;
        EXPECT_EQ(result.check["status"], "passed") << workload.name << " " << submit;
      }
    }
  }
}

TEST_F(ChannelGpu, the_timeline_begins_where_commands_were_enqueued) {
  for (const char* name : {"tiny_kernel_stress", "moe", "zero_offload"}) {
    RunRequest request;
    request.workload = name;
    request.scale = Scale::tiny;
    request.submit = parse_submit("channel:mpsc:4");
    const BuiltRun built = build_run(device().info(), request);
    TracedPass pass = run_traced_pass(device(), built.step, built.placement, built.submit, TraceSchedule(3), {});
    ASSERT_EQ(pass.timeline.spans.size(), 3 * built.step.commands().size()) << pass.timeline.source;
    describe_timeline(pass, device().info(), built.step, built.placement, built.submit, "a test");
    for (const Span& span : pass.timeline.spans) {
      ASSERT_NE(span.enqueued_ns, kNoTime);
      if (span.submitted_ns == kNoTime) continue;
      EXPECT_LE(span.enqueued_ns, span.submitted_ns) << name;
    }
    const Waterfall way = waterfall(pass.timeline);
    ASSERT_FALSE(way.classes.empty());
    const Hop& hop = way.classes[0].hops.at(0);
    EXPECT_EQ(hop.from, Stage::enqueued) << name;
    EXPECT_EQ(hop.negative, 0u) << name;
    EXPECT_GT(hop.p50_ns, 0) << name;
  }
}

}  // namespace
}  // namespace weir
