// What tests of devices over the table share: the steps of src/conformance, and what timelines of GPUs say besides.
#pragma once

#include <gtest/gtest.h>

#include "conformance/checks.h"
#include "conformance/round_trip.h"
#include "conformance/steps.h"
#include "device/device.h"
#include "kernel/chain.h"
#include "stream/submitter.h"

namespace weir::gpu_cases {

using namespace conformance;

inline Subject subject_of(Device& device) { return {device, device.info(), nullptr, {}}; }

// Any way to submit, any placement, pipelined or not: the same buffers, bit for bit.
inline void expect_same_buffers(Device& device, std::uint64_t seed) {
  Subject subject = subject_of(device);
  Dice dice(seed + 1000);
  const int streams = 1 + static_cast<int>(dice.below(7));
  const Step step = random_step(seed, streams, {.has_host = seed % 2 == 0, .has_cuts = seed % 3 == 0});
  for (const char* submit :
       {"inline", "threads:2", "threads:3", "graph", "channel:mpsc:4", "channel:lanes:2", "channel:mpsc:3x2"}) {
    if (std::string_view(submit) == "graph" && !subject.info.graphs) continue;
    for (const bool is_pipelined : {false, true}) {
      const int iterations = 1 + static_cast<int>(dice.below(4));
      const Placement placement =
          dice.below(2) == 0 ? natural(step) : random_placement(step, seed, 1 + static_cast<int>(dice.below(9)));
      const Outcome outcome = same_buffers(subject, step, placement, {submit, is_pipelined, iterations});
      EXPECT_TRUE(outcome.is_passed()) << "seed " << seed << ": " << outcome.text;
    }
  }
}

// To the host, changed there, and back, on every stream.
inline void expect_round_trips(Device& device) {
  Subject subject = subject_of(device);
  for (const bool has_cuts : {false, true}) {
    const Step step = round_trip_step(has_cuts);
    for (const char* submit : {"inline", "threads:3", "graph"}) {
      if (std::string_view(submit) == "graph" && !subject.info.graphs) continue;
      for (const bool is_pipelined : {false, true}) {
        const Outcome outcome = same_buffers(subject, step, natural(step), {submit, is_pipelined, 20});
        EXPECT_TRUE(outcome.is_passed()) << outcome.text << (has_cuts ? ", with cuts" : "");
      }
    }
  }
}

// Follows every kind of initial contents through prepare and reset.
inline void expect_initial_contents(Device& device) {
  Subject subject = subject_of(device);
  const std::string which[] = {"buffers/initial contents and reset"};
  for (const ConformanceCase* const each : matching(cases(), which)) {
    const Outcome outcome = each->examine(subject);
    EXPECT_TRUE(outcome.is_passed()) << outcome.text;
  }
}

// More iterations in flight than the ring of events holds.
inline void expect_spans_of_many_iterations(Device& device, const char* submit, int iterations) {
  Subject subject = subject_of(device);
  const Outcome outcome = many_iterations(subject, submit, iterations);
  EXPECT_TRUE(outcome.is_passed()) << submit << ": " << outcome.text;
}

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
