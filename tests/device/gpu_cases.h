// What tests of devices over the table share: the steps of src/conformance, and what timelines of GPUs say besides.
#pragma once

#include <gtest/gtest.h>

#include "conformance/checks.h"
#include "conformance/steps.h"
#include "device/device.h"
#include "kernel/chain.h"
#include "stream/submitter.h"

namespace weir::gpu_cases {

using namespace conformance;

// Spans follow each other, and the timeline follows the edges; the last iterations are kept, and queues are known where
// a profiler tells them.
inline void expect_sane_timeline(Device& device, std::uint64_t seed) {
  const Step step = random_step(seed, 3, {.has_host = seed % 2 == 0});
  const Placement placement = natural(step);
  const auto session = device.prepare(step, placement, {.is_traced = true, .trace_iterations = 2});
  iterate(*session, *inline_submitter(step, *session), {.iterations = 3});
  const Timeline timeline = session->timeline();
  EXPECT_EQ(timeline_complaint(step, placement, timeline, {.iterations = 2}), "");
  const std::size_t count = step.commands().size();
  ASSERT_EQ(timeline.spans.size(), 2 * count);
  EXPECT_EQ(timeline.has_exact_gaps, timeline.source.starts_with("activity records")) << timeline.source;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    EXPECT_EQ(span.iteration, 1 + i / count);  // the last two of three
    const bool has_queue = timeline.has_exact_gaps && step.commands()[span.command].kind != CommandKind::host;
    EXPECT_EQ(span.queue != kNoQueue, has_queue) << span.command;
  }
}

}  // namespace weir::gpu_cases
