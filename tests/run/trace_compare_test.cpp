#include "run/trace_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

TEST(TraceCompare, WritesItsDocument) {
  const Json json = trace_comparison_json(compare_traces(trace(1, 1), "before", trace(1.3, 2), "after"), false);
  EXPECT_EQ(json["schema"], "weir.trace_comparison/1");
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["iterations"]["test"], 40);
  EXPECT_EQ(json["kernels"][0]["verdict"], "slower");
  EXPECT_EQ(json["kernels"][0]["kind"], "kernel");
  EXPECT_TRUE(json["categories"].back()["verdict"].is_null());  // idle
  EXPECT_GE(json["verdicts"]["slower"], 3);                     // gemm, compute, span
}

}  // namespace
}  // namespace weir
