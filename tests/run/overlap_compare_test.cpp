#include "lab/overlap/overlap_compare.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "lab/overlap/overlap.h"
#include "lab/overlap/overlap_summary.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

Json summary(double step, double exposed, double efficiency, std::uint64_t seed) {
  SplitMix random(seed);
  Json steps = Json::array(), exposures = Json::array(), efficiencies = Json::array();
  for (int i = 0; i < 40; ++i) {
    const double noise = 0.98 + 0.04 * random.fraction();
    steps.push_back(step * noise);
    exposures.push_back(exposed * noise);
    efficiencies.push_back(efficiency * noise);
  }
  return {{"schema", "weir.overlap/2"},
          {"status", "complete"},
          {"config", {{"fsdp.prefetch", "1"}}},
          {"ranks", {{"count", 2}, {"collectives", "MPI on host memory"}}},
          {"device", {{"model", "a CPU"}}},
          {"step_ns", {{"overlapped", {{"samples_ns", steps}}}}},
          {"overlap", {{"samples", {{"exposed_ns", exposures}, {"efficiency", efficiencies}}}}}};
}

class OverlapCompare : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const Json& json) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << json.dump();
    return path;
  }
  fs::path folder_ = fs::temp_directory_path() / ("weir_overlap_compare_" + std::to_string(::getpid()));
};

// Five processes of eight samples each.
Json in_processes(Json summary) {
  summary["processes"] = Json::array();
  for (int i = 0; i < 5; ++i) summary["processes"].push_back({{"samples", 8}, {"traced", 8}});
  return summary;
}

TEST_F(OverlapCompare, one_process_on_a_side_settles_nothing) {
  const OverlapFile a = load_overlap(write("a/summary.json", summary(1e6, 2e5, 0.8, 1)));
  const OverlapFile worse = load_overlap(write("c/summary.json", summary(1.2e6, 4e5, 0.6, 3)));
  const Comparison found = compare_overlap(a, worse);
  EXPECT_EQ(exit_code(found, false), 0);
  EXPECT_EQ(exit_code(found, true), 4);
  ASSERT_FALSE(found.tests[0].pairs[0].notes.empty());
  EXPECT_NE(found.tests[0].pairs[0].notes.back().find("--processes 5"), std::string::npos);
}

TEST_F(OverlapCompare, tells_worse_from_the_same) {
  const OverlapFile a = load_overlap(write("a/summary.json", in_processes(summary(1e6, 2e5, 0.8, 1))));
  const OverlapFile same = load_overlap(write("b/summary.json", in_processes(summary(1e6, 2e5, 0.8, 2))).parent_path());
  const OverlapFile worse = load_overlap(write("c/summary.json", in_processes(summary(1.2e6, 4e5, 0.6, 3))));
  EXPECT_EQ(exit_code(compare_overlap(a, same), true), 0);
  const Comparison found = compare_overlap(a, worse);
  EXPECT_EQ(exit_code(found, true), 3);
  ASSERT_EQ(found.tests[0].pairs[0].metrics.size(), 3u);
  for (const MetricComparison& metric : found.tests[0].pairs[0].metrics)
    EXPECT_EQ(metric.verdict, Verdict::slower) << metric.metric;
  const Comparison better = compare_overlap(worse, a);
  for (const MetricComparison& metric : better.tests[0].pairs[0].metrics)
    EXPECT_EQ(metric.verdict, Verdict::faster) << metric.metric;
}

TEST_F(OverlapCompare, knows_which_process_samples_came_from) {
  Json many = summary(1e6, 2e5, 0.8, 1);
  const auto process = [](const Json& samples, const Json& traced) {
    return Json{{"samples", samples}, {"traced", traced}};
  };
  many["processes"] = Json::array({process(25, 30), process(15, 10)});
  const OverlapPointFile point = load_overlap(write("a.json", many)).points[0];
  EXPECT_EQ(point.step_processes, (std::vector<std::size_t>{25, 15}));
  EXPECT_EQ(point.traced_processes, (std::vector<std::size_t>{30, 10}));
  EXPECT_EQ(point.efficiency_processes, (std::vector<std::size_t>{30, 10}));
  Json fewer = many;
  fewer["overlap"]["samples"]["efficiency"][3] = nullptr;
  EXPECT_TRUE(load_overlap(write("d.json", fewer)).points[0].efficiency_processes.empty());
  EXPECT_EQ(load_overlap(write("d.json", fewer)).points[0].traced_processes, point.traced_processes);
  EXPECT_TRUE(load_overlap(write("b.json", summary(1e6, 2e5, 0.8, 1))).points[0].step_processes.empty());
  // Sizes that are not those of the samples say nothing.
  for (const Json& wrong : {Json(14), Json(-15), Json("15"), Json(1e300), Json()}) {
    many["processes"] = Json::array({process(25, 40), process(wrong, 0)});
    const OverlapPointFile odd = load_overlap(write("c.json", many)).points[0];
    EXPECT_TRUE(odd.step_processes.empty()) << wrong;
    EXPECT_EQ(odd.traced_processes, (std::vector<std::size_t>{40, 0}));
  }
}

TEST_F(OverlapCompare, adds_processes_to_a_summary) {
  Json all;
  for (const std::uint64_t seed : {1, 2, 3}) {
    Json one = summary(1e6, 2e5, 0.8, seed);
    one["step_ns"]["overlapped"]["p50"] = 1e6;
    one["step_ns"]["serial"] = nullptr;
    add_overlap_process(all, one, 5);
  }
  EXPECT_EQ(all["step_ns"]["overlapped"]["count"], 120);
  EXPECT_TRUE(all["step_ns"]["serial"].is_null());
  const OverlapPointFile point = load_overlap(write("a.json", all)).points[0];
  EXPECT_EQ(point.step_ns.size(), 120u);
  EXPECT_EQ(point.step_processes, (std::vector<std::size_t>{40, 40, 40}));
  EXPECT_EQ(point.traced_processes, (std::vector<std::size_t>{40, 40, 40}));
}

TEST_F(OverlapCompare, pairs_the_points_of_sweeps) {
  for (const char* const side : {"a", "b"})
    for (const char* const point : {"fsdp.prefetch=0", "fsdp.prefetch=1"})
      write(std::string(side) + "/" + point + "/summary.json", summary(1e6, 2e5, 0.8, 1));
  write("b/fsdp.prefetch=2/summary.json", summary(1e6, 2e5, 0.8, 1));
  const Comparison found = compare_overlap(load_overlap(folder_ / "a"), load_overlap(folder_ / "b"));
  EXPECT_EQ(found.tests[0].pairs.size(), 2u);
  ASSERT_EQ(found.tests[0].test_only.size(), 1u);
  EXPECT_EQ(found.tests[0].test_only[0].label, "fsdp.prefetch=2");
}

TEST_F(OverlapCompare, settings_that_differ_are_noted) {
  Json other = summary(1e6, 2e5, 0.8, 1);
  other["config"]["fsdp.prefetch"] = "4";
  const Comparison found = compare_overlap(load_overlap(write("a/summary.json", summary(1e6, 2e5, 0.8, 1))),
                                           load_overlap(write("b/summary.json", other)));
  ASSERT_FALSE(found.tests[0].pairs[0].notes.empty());
  EXPECT_EQ(found.tests[0].pairs[0].notes[0], "fsdp.prefetch differs: 1 vs 4");
}

TEST_F(OverlapCompare, failed_runs_are_no_faster) {
  Json failed = summary(1, 1, 1, 1);
  failed["status"] = "failed";
  failed["failure"] = "a race";
  const OverlapFile good = load_overlap(write("a/summary.json", summary(1e6, 2e5, 0.8, 1)));
  EXPECT_EQ(exit_code(compare_overlap(good, load_overlap(write("b/summary.json", failed))), false), 3);
}

TEST_F(OverlapCompare, what_is_no_summary_is_rejected) {
  EXPECT_THROW(load_overlap(folder_), Error);
  EXPECT_THROW(load_overlap(folder_ / "nothing.json"), Error);
  EXPECT_THROW(load_overlap(write("x.json", Json{{"schema", "weir.result/2"}})), Error);
  EXPECT_THROW(load_overlap(write("y.json", Json::array({1, 2}))), Error);
  // The right schema and nothing else: no samples, so nothing can be said.
  const OverlapFile empty = load_overlap(write("z.json", Json{{"schema", "weir.overlap/2"}, {"status", "complete"}}));
  EXPECT_EQ(exit_code(compare_overlap(empty, empty), true), 4);
}

TEST(OverlapBound, exposure_by_a_dependency_cannot_be_hidden) {
  // Compute covers all of it, but 92.6 % of the exposed 400 ns wait for the collective itself.
  const OverlapBound bound = overlap_bound(5000, 1000, 1000, 0.926 * 400);
  EXPECT_NEAR(*bound.best_efficiency, 1 - 0.926 * 0.4, 1e-12);
  EXPECT_NEAR(*bound.least_exposed_ns, 0.926 * 400, 1e-9);
  EXPECT_DOUBLE_EQ(*overlap_bound(5000, 1000, 1000, 0).best_efficiency, 1);
  EXPECT_DOUBLE_EQ(*overlap_bound(250, 1000, 1000, 100).best_efficiency, 0.25);  // too little compute is the limit
  EXPECT_FALSE(overlap_bound(5000, 0, 0, 0).best_efficiency);
  SplitMix random(11);
  for (int i = 0; i < 200; ++i) {
    const double compute = 2000 * random.fraction(), alone = 1 + 1000 * random.fraction();
    const double communication = alone * (1 + random.fraction()), dependency = communication * random.fraction();
    const double best = *overlap_bound(compute, alone, communication, dependency).best_efficiency;
    EXPECT_LE(best, 1 - dependency / communication + 1e-12);
    EXPECT_LE(best, std::min(1.0, compute / alone) + 1e-12);
    EXPECT_GE(best, 0);
  }
}

TEST(OverlapBound, a_rank_whose_next_kernel_waits_for_its_collective) {
  // Kernel 0..100, collective 100..300, and a kernel that depends on it 300..400, in two iterations.
  Timeline timeline;
  timeline.names = {"compute", "all_reduce"};
  for (std::uint32_t iteration = 0; iteration < 2; ++iteration)
    for (std::uint32_t i = 0; i < 3; ++i) {
      Span span;
      span.command = i;
      span.iteration = iteration;
      span.kind = i == 1 ? SpanKind::collective : SpanKind::kernel;
      span.name = i == 1 ? 1 : 0;
      span.stream = static_cast<std::uint16_t>(i == 1 ? 1 : 0);
      span.queue = span.stream;
      span.submitted_ns = 0;
      const std::int64_t begin = iteration * 1000;
      span.started_ns = begin + (i == 0 ? 0 : i == 1 ? 100 : 300);
      span.ended_ns = begin + (i == 0 ? 100 : i == 1 ? 300 : 400);
      timeline.spans.push_back(span);
    }
  const auto ranks = causes_by_rank({&timeline});
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].iterations, 2u);
  EXPECT_DOUBLE_EQ(ranks[0].found.exposed_ns, 400);
}

}  // namespace
}  // namespace weir
