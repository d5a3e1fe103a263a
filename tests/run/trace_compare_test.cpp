#include "run/trace_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "support/gauss.h"

namespace weir {
namespace {

// Iterations of 1 ms on one device: gemm, add and a collective, each once, with a little noise. `factor` stretches
// gemm.
Timeline trace(double factor, std::uint64_t seed, int iterations = 40, bool has_ranges = true) {
  Timeline made;
  made.names = {"gemm", "add", "ncclDevKernel_AllReduce", "launch"};
  made.processes = {{0, "rank"}};
  made.devices = {{0, 0, "GPU 0"}};
  made.streams = {{0, 7, "stream 7"}};
  SplitMix random(seed);
  const auto add = [&](std::uint32_t name, SpanKind kind, std::int64_t at, double took) {
    Span span;
    span.name = name;
    span.kind = kind;
    span.started_ns = span.submitted_ns = at;
    span.ended_ns = at + static_cast<std::int64_t>(took * (0.99 + 0.02 * random.fraction()));
    made.spans.push_back(span);
    return span.ended_ns;
  };
  for (int i = 0; i < iterations; ++i) {
    const std::int64_t begin = 1'000'000LL * i;
    std::int64_t at = add(0, SpanKind::kernel, begin, 400'000 * factor);
    at = add(1, SpanKind::kernel, at, 100'000);
    made.collectives.push_back(
        {static_cast<std::uint32_t>(made.spans.size()), CollectiveKind::all_reduce, 2, kNoName, 0});
    add(2, SpanKind::collective, at, 50'000);
    if (!has_ranges) continue;
    made.names.push_back("ProfilerStep#" + std::to_string(i));
    made.ranges.push_back({static_cast<std::uint32_t>(made.names.size() - 1), 0, begin, begin + 999'999});
  }
  return made;
}

const KernelChange& kernel(const TraceComparison& comparison, const std::string& name) {
  return *std::find_if(comparison.kernels.begin(), comparison.kernels.end(),
                       [&](const KernelChange& change) { return change.name == name; });
}

const CategoryChange& category(const TraceComparison& comparison, const std::string& name) {
  return *std::find_if(comparison.categories.begin(), comparison.categories.end(),
                       [&](const CategoryChange& change) { return change.category == name; });
}

TEST(TraceCompare, FindsTheKernelThatBecameSlower) {
  const TraceComparison found = compare_traces(trace(1, 1), "before", trace(1.3, 2), "after");
  ASSERT_EQ(found.kernels.size(), 3u);
  EXPECT_EQ(found.kernels[0].name, "gemm");  // by time
  EXPECT_EQ(kernel(found, "gemm").durations.verdict, Verdict::slower);
  EXPECT_NEAR(*kernel(found, "gemm").durations.ratio, 1.3, 0.02);
  EXPECT_EQ(kernel(found, "add").durations.verdict, Verdict::same);
  EXPECT_EQ(kernel(found, "gemm").baseline.count, 40u);
  EXPECT_EQ(found.baseline_iterations, 40u);
  EXPECT_EQ(category(found, "span").iterations.verdict, Verdict::slower);
  EXPECT_NEAR(*category(found, "span").ratio, 670.0 / 550, 0.02);
  EXPECT_EQ(category(found, "communication").iterations.verdict, Verdict::same);
  EXPECT_FALSE(category(found, "idle").is_judged);
  EXPECT_FALSE(category(found, "copy").is_judged);  // there are none
  EXPECT_EQ(exit_code(found, false), 3);
}

TEST(TraceCompare, FasterIsNoFailure) {
  const TraceComparison found = compare_traces(trace(1.3, 1), "before", trace(1, 2), "after");
  EXPECT_EQ(kernel(found, "gemm").durations.verdict, Verdict::faster);
  EXPECT_EQ(category(found, "compute").iterations.verdict, Verdict::faster);
  EXPECT_EQ(exit_code(found, true), 0);
}

TEST(TraceCompare, SameIsTheSame) {
  const TraceComparison found = compare_traces(trace(1, 1), "before", trace(1, 2), "after");
  for (const KernelChange& change : found.kernels) EXPECT_EQ(change.durations.verdict, Verdict::same);
  EXPECT_EQ(exit_code(found, true), 0);
}

TEST(TraceCompare, FewInstancesAreAmbiguous) {
  const TraceComparison found = compare_traces(trace(1, 1, 3), "before", trace(2, 2, 3), "after");
  EXPECT_EQ(kernel(found, "gemm").durations.verdict, Verdict::ambiguous);
  EXPECT_FALSE(kernel(found, "gemm").durations.reason.empty());
  EXPECT_EQ(exit_code(found, false), 0);
  EXPECT_EQ(exit_code(found, true), 4);
}

TEST(TraceCompare, WithoutIterationsCategoriesHaveNoVerdict) {
  const TraceComparison found = compare_traces(trace(1, 1), "before", trace(1.3, 2, 40, false), "after");
  EXPECT_EQ(found.baseline_iterations, 0u);
  for (const CategoryChange& change : found.categories) EXPECT_FALSE(change.is_judged);
  EXPECT_NEAR(*category(found, "compute").ratio, 620.0 / 500, 0.02);
  EXPECT_EQ(found.notes.size(), 1u);
  EXPECT_EQ(exit_code(found, false), 3);  // the kernel is slower all the same
}

TEST(TraceCompare, SmallKernelsAreNotJudged) {
  Timeline before = trace(1, 1), after = trace(1, 2);
  for (Timeline* timeline : {&before, &after}) {
    timeline->names.push_back("tiny");
    for (int i = 0; i < 30; ++i) {
      Span span;
      span.name = static_cast<std::uint32_t>(timeline->names.size() - 1);
      span.started_ns = 1'000'000LL * i + 900'000;
      span.ended_ns = span.started_ns + (timeline == &before ? 100 : 300);
      timeline->spans.push_back(span);
    }
  }
  const TraceComparison found = compare_traces(before, "before", after, "after");
  EXPECT_FALSE(kernel(found, "tiny").is_judged);
  EXPECT_EQ(kernel(found, "tiny").durations.ratio, 3);
  EXPECT_EQ(exit_code(found, false), 0);
}

TEST(TraceCompare, ListsWhatOnlyOneTraceHas) {
  Timeline before = trace(1, 1), after = trace(1, 2);
  before.names[1] = "old_add";
  after.names[1] = "new_add";
  const TraceComparison found = compare_traces(before, "before", after, "after");
  ASSERT_EQ(found.baseline_only.size(), 1u);
  EXPECT_EQ(found.baseline_only[0].name, "old_add");
  EXPECT_EQ(found.baseline_only[0].baseline.count, 40u);
  ASSERT_EQ(found.test_only.size(), 1u);
  EXPECT_NEAR(found.test_only[0].test.total_ns, 4e6, 4e4);
}

TEST(TraceCompare, RefusesWhatCannotBeCompared) {
  Timeline other = trace(1, 1);
  other.names = {"x", "y", "z"};
  EXPECT_THROW(compare_traces(trace(1, 1), "before", Timeline{}, "after"), Error);
  EXPECT_THROW(compare_traces(trace(1, 1), "before", other, "after"), Error);
}

// Fifteen kernels, 60 instances each, with noise of 5 % as a GPU's clocks make it.
Timeline many_kernels(double factor, std::uint64_t seed) {
  Timeline made;
  made.processes = {{0, "rank"}};
  made.devices = {{0, 0, "GPU 0"}};
  made.streams = {{0, 7, "stream 7"}};
  SplitMix random(seed);
  std::int64_t at = 0;
  for (std::uint32_t name = 0; name < 15; ++name) made.names.push_back("kernel_" + std::to_string(name));
  for (int i = 0; i < 60; ++i)
    for (std::uint32_t name = 0; name < 15; ++name) {
      Span span;
      span.name = name;
      span.kind = SpanKind::kernel;
      span.started_ns = span.submitted_ns = at;
      span.ended_ns = at + static_cast<std::int64_t>(100'000 * factor * std::exp(0.05 * gauss(random)));
      at = span.ended_ns + 1000;
      made.spans.push_back(span);
    }
  return made;
}

// 26 of 40 such comparisons exited 3 when the largest of fifteen estimates decided.
TEST(TraceCompare, ManyKernelsMustBeShownToExceedTheThreshold) {
  CompareOptions options;
  options.bootstrap.resamples = 400;
  const auto exits = [&](double factor) {
    int count = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
      count +=
          exit_code(compare_traces(many_kernels(1, seed), "before", many_kernels(factor, 100 + seed), "after", options),
                    false) == 3;
    return count;
  };
  EXPECT_LE(exits(1), 1);
  EXPECT_LE(exits(1.03), 1);
  EXPECT_GE(exits(1.1), 38);
}

struct Paced {
  double period_ns = 1e6;
  int iterations = 40;
  bool is_marked = false;
  double noise = 0.03;  // of the pauses, which follow each other (AR(1), 0.3), as a host's do
  int pauses = 0;       // of 50 periods
  const char* gemm = "gemm";
};

// The same three commands in each iteration, and a pause after them. What differs between traces is the host.
Timeline paced(const Paced& how, std::uint64_t seed) {
  Timeline made;
  made.names = {how.gemm, "add", "Memcpy HtoD"};
  made.processes = {{0, "rank"}};
  made.devices = {{0, 0, "GPU 0"}};
  made.streams = {{0, 7, "stream 7"}};
  SplitMix random(seed);
  double at = 0, level = 0;
  for (int i = 0; i < how.iterations; ++i) {
    const auto begin = static_cast<std::int64_t>(at);
    double started = at;
    for (const auto& [name, kind, took] : {std::tuple{0U, SpanKind::kernel, 400'000.0},
                                           {1U, SpanKind::kernel, 100'000.0},
                                           {2U, SpanKind::copy, 20'000.0}}) {
      Span span;
      span.name = name;
      span.kind = kind;
      span.bytes = kind == SpanKind::copy ? 4096 : 0;
      span.started_ns = span.submitted_ns = static_cast<std::int64_t>(started);
      started += took * (1 + 0.005 * gauss(random));
      span.ended_ns = static_cast<std::int64_t>(started);
      made.spans.push_back(span);
    }
    level = 0.3 * level + how.noise * gauss(random);
    at += std::max(600'000.0, how.period_ns * std::exp(level)) + (i > 0 && i <= how.pauses ? 50 * how.period_ns : 0);
    if (!how.is_marked) continue;
    made.names.push_back("ProfilerStep#" + std::to_string(i));
    made.ranges.push_back({static_cast<std::uint32_t>(made.names.size() - 1), 0, begin, static_cast<std::int64_t>(at)});
  }
  return made;
}

double total(const TraceComparison& comparison, const std::string& quantity) {
  for (const TraceTotal& each : comparison.totals)
    if (each.quantity == quantity) return each.ratio.value_or(-1);
  return -1;
}

// Every kernel takes as long as before, but the device waits longer for the next: all of it was called the same.
TEST(TraceCompare, IdleTimeBetweenTheSameKernelsIsSlower) {
  for (const bool is_marked : {true, false}) {
    Paced how{1e6, 40, is_marked};
    const Timeline before = paced(how, 1);
    how.period_ns = 1.3e6;
    how.iterations = 31;  // in the same time
    const TraceComparison found = compare_traces(before, "before", paced(how, 2), "after");
    for (const KernelChange& change : found.kernels) EXPECT_EQ(change.durations.verdict, Verdict::same) << change.name;
    EXPECT_EQ(found.pace.is_marked, is_marked);
    EXPECT_EQ(found.pace.kernel.empty(), is_marked);
    EXPECT_EQ(found.pace.times.verdict, Verdict::slower) << found.pace.times.reason;
    EXPECT_NEAR(*found.pace.times.ratio, 1.3, 0.05);
    EXPECT_NEAR(found.pace.baseline_commands, 3, 1e-9);
    EXPECT_EQ(exit_code(found, false), 3);
    EXPECT_TRUE(found.summary[0].starts_with(is_marked ? "slower: an iteration took" : "slower: a repetition took"))
        << found.summary[0];
    EXPECT_NE(found.summary[1].find("kernels -22.5 %"), std::string::npos) << found.summary[1];
    EXPECT_NEAR(total(found, "kernels"), 31.0 / 40, 1e-9);
    EXPECT_NEAR(total(found, "copied_bytes"), 31.0 / 40, 1e-9);
    EXPECT_NEAR(total(found, "span"), 1, 0.05);
    EXPECT_GT(total(found, "idle"), 1.2);
    EXPECT_EQ(total(found, "iterations"), is_marked ? 31.0 / 40 : -1);
    // One process of each: the reader is told what that cannot know.
    EXPECT_NE(found.notes.back().find("identical code"), std::string::npos);
    EXPECT_EQ(exit_code(compare_traces(paced(how, 2), "before", before, "after"), true), 0);  // faster
  }
}

TEST(TraceCompare, OtherWorkHasNoPaceUnlessIterationsAreMarked) {
  Paced how, other;
  other.gemm = "new_gemm";
  other.period_ns = 2e6;
  const TraceComparison found = compare_traces(paced(how, 1), "before", paced(other, 2), "after");
  EXPECT_EQ(found.pace.times.verdict, Verdict::not_comparable);
  EXPECT_GT(found.pace.other_work, 0.5);
  EXPECT_NE(found.summary[0].find("not comparable: the traces did different work"), std::string::npos);
  EXPECT_EQ(exit_code(found, false), 0);
  EXPECT_EQ(exit_code(found, true), 4);
  how.is_marked = other.is_marked = true;
  const TraceComparison marked = compare_traces(paced(how, 1), "before", paced(other, 2), "after");
  EXPECT_EQ(marked.pace.times.verdict, Verdict::slower);
  EXPECT_EQ(marked.summary.size(), 3u);  // and says that an iteration is not the same work
}

TEST(TraceCompare, AFewLongPausesAreNotCalledTheSame) {
  Paced how, paused;
  how.noise = paused.noise = 0.005;
  paused.pauses = 3;
  const TraceComparison found = compare_traces(paced(how, 1), "before", paced(paused, 2), "after");
  EXPECT_EQ(found.pace.times.verdict, Verdict::ambiguous);
  EXPECT_NE(found.pace.times.reason.find("a few long pauses"), std::string::npos) << found.pace.times.reason;
  EXPECT_GT(*found.pace.mean_ratio, 3);
}

TEST(TraceCompare, WhatDoesNotRecurIsAmbiguous) {
  Paced how;
  how.iterations = 3;
  const TraceComparison found = compare_traces(paced(how, 1), "before", paced(how, 2), "after");
  EXPECT_EQ(found.pace.times.verdict, Verdict::ambiguous);
  EXPECT_NE(found.summary[0].find("no kernel recurs"), std::string::npos);
  EXPECT_EQ(exit_code(found, false), 0);
}

// docs/statistics.md: identical code exits 3 in about 1 % at most, the pace included.
TEST(TraceCompare, ThePaceOfIdenticalCodeIsSeldomCalledSlower) {
  CompareOptions options;
  options.bootstrap.resamples = 400;
  Paced how;
  how.noise = 0.15;
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed)
    alarms +=
        exit_code(compare_traces(paced(how, seed), "before", paced(how, 1000 + seed), "after", options), false) == 3;
  EXPECT_LE(alarms, 6);
  how.noise = 0.05;
  int found = 0;
  const Paced slower{1.2e6, 40, false, 0.05};
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    found +=
        exit_code(compare_traces(paced(how, seed), "before", paced(slower, 1000 + seed), "after", options), false) == 3;
  EXPECT_GE(found, 38);
}

// Four ranks that wait for each other are no four times as many samples.
TEST(TraceCompare, AnIterationIsOneSampleHoweverManyDevices) {
  Timeline before = trace(1, 1, 3), after = trace(2, 2, 3);
  for (Timeline* timeline : {&before, &after}) {
    const std::size_t spans = timeline->spans.size();
    for (std::uint16_t device = 1; device < 4; ++device) {
      timeline->devices.push_back({0, device, "GPU"});
      timeline->streams.push_back({device, 7, "stream 7"});
      for (std::size_t i = 0; i < spans; ++i) {
        timeline->spans.push_back(timeline->spans[i]);
        timeline->spans.back().stream = device;
      }
    }
  }
  const TraceComparison found = compare_traces(before, "before", after, "after");
  EXPECT_EQ(category(found, "span").iterations.baseline_count, 3u);
  EXPECT_EQ(category(found, "span").iterations.verdict, Verdict::ambiguous);
  EXPECT_EQ(found.pace.times.baseline_count, 2u);
}

TEST(TraceCompare, WritesItsDocument) {
  const Json json = trace_comparison_json(compare_traces(trace(1, 1), "before", trace(1.3, 2), "after"), false);
  EXPECT_EQ(json["schema"], "weir.trace_comparison/2");
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["iterations"]["test"], 40);
  EXPECT_EQ(json["pace"]["is_marked"], true);
  EXPECT_EQ(json["pace"]["test"]["count"], 39);
  EXPECT_EQ(json["totals"][0]["quantity"], "span");
  EXPECT_EQ(json["summary"].size(), 2u);
  EXPECT_EQ(json["kernels"][0]["verdict"], "slower");
  EXPECT_EQ(json["kernels"][0]["kind"], "kernel");
  EXPECT_TRUE(json["categories"].back()["verdict"].is_null());  // idle
  EXPECT_GE(json["verdicts"]["slower"], 3);                     // gemm, compute, span
}

}  // namespace
}  // namespace weir
