// What tests of devices over the table share: the steps of src/lab/conformance, and what timelines of GPUs say besides.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "device/device.h"
#include "kernel/chain.h"
#include "lab/conformance/checks.h"
#include "lab/conformance/round_trip.h"
#include "lab/conformance/steps.h"
#include "submit/submitter.h"

namespace weir::gpu_cases {

using conformance::Contents;
using conformance::Dice;
using conformance::iterate;
using conformance::natural;
using conformance::random_placement;
using conformance::random_step;
using conformance::read_all;
using conformance::reference;
using conformance::run;
using conformance::same_buffers;
using conformance::Subject;
using conformance::timeline_problem;

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
      const conformance::CaseOutcome outcome =
          same_buffers(subject, step, placement, {submit, is_pipelined, iterations});
      EXPECT_TRUE(outcome.is_passed()) << "seed " << seed << ": " << outcome.text;
    }
  }
}

// To the host, changed there, and back, on every stream.
inline void expect_round_trips(Device& device) {
  Subject subject = subject_of(device);
  for (const bool has_cuts : {false, true}) {
    const Step step = conformance::round_trip_step(has_cuts);
    for (const char* submit : {"inline", "threads:3", "graph"}) {
      if (std::string_view(submit) == "graph" && !subject.info.graphs) continue;
      for (const bool is_pipelined : {false, true}) {
        const conformance::CaseOutcome outcome = same_buffers(subject, step, natural(step), {submit, is_pipelined, 20});
        EXPECT_TRUE(outcome.is_passed()) << outcome.text << (has_cuts ? ", with cuts" : "");
      }
    }
  }
}

// Follows every kind of initial contents through prepare and reset.
inline void expect_initial_contents(Device& device) {
  Subject subject = subject_of(device);
  const std::string which[] = {"buffers/initial contents and reset"};
  for (const auto* const each : conformance::matching(conformance::cases(), which)) {
    const conformance::CaseOutcome outcome = each->examine(subject);
    EXPECT_TRUE(outcome.is_passed()) << outcome.text;
  }
}

// More iterations in flight than the ring of events holds.
inline void expect_spans_of_many_iterations(Device& device, const char* submit, int iterations) {
  Subject subject = subject_of(device);
  const conformance::CaseOutcome outcome = many_iterations(subject, submit, iterations);
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
  EXPECT_EQ(timeline_problem(step, placement, timeline, {.iterations = 2}), "");
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

// One stream is held, the other runs to its end, and whoever asks from outside learns just that.
inline void expect_progress(Device& device) {
  StepBuilder builder(1);
  const BufferId flag = builder.host(ElementType::i32, 1, Init::constant),
                 moment = builder.host(ElementType::i32, 4, Init::constant);
  const KernelShape fill{.dims = {16, 0}};
  const auto fill_on = [&](StreamId stream) {
    builder.launch("fill", {.stream = stream}, fill, {{builder.output(ElementType::f32, 16)}});
  };
  fill_on(0);
  fill_on(1);
  builder.launch("hold", {.stream = 0}, {.type = ElementType::i32, .dims = {20'000'000'000}}, {{flag}, {moment}});
  fill_on(1);
  fill_on(0);
  const Step step = std::move(builder).seal(2);
  const Placement placement = natural(step);
  for (const bool is_traced : {false, true}) {
    const auto session =
        device.prepare(step, placement, {.is_traced = is_traced, .trace_iterations = 2, .follows_progress = true});
    const auto submitter = inline_submitter(step, *session);
    std::atomic_ref held(*reinterpret_cast<std::int32_t*>(session->host_memory(flag).data()));
    for (std::uint64_t i = 0; i < 2; ++i) {
      held.store(0);
      session->begin_iteration();
      submitter->submit_step();
      std::vector<StreamProgress> progress;
      for (int tries = 0; tries < 5000; ++tries) {
        progress = session->progress();
        ASSERT_EQ(progress.size(), 2u);
        if (progress[0].ended == 3 * i + 1 && progress[1].ended == 2 * i + 2) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_TRUE(progress[0].is_exact);
      EXPECT_EQ(progress[0].submitted, 3 * i + 3);
      EXPECT_EQ(progress[0].ended, 3 * i + 1) << "the fill before the hold, and no more";
      EXPECT_EQ(progress[1].submitted, 2 * i + 2);
      EXPECT_EQ(progress[1].ended, 2 * i + 2);
      held.store(1);
      session->finish();
      EXPECT_EQ(session->progress()[0].ended, 3 * i + 3);
    }
    if (!is_traced) continue;
    // The marks are no commands: a profiler must not take them for any.
    const Timeline timeline = session->timeline();
    EXPECT_EQ(timeline_problem(step, placement, timeline, {.iterations = 2}), "") << timeline.source;
  }
}

}  // namespace weir::gpu_cases
