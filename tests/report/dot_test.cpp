#include <gtest/gtest.h>

#include "report/text/step_text.h"
#include "support/text.h"

namespace weir {
namespace {

StepView view(const std::string& workload, int streams, std::vector<std::pair<std::string, std::string>> params = {}) {
  RunRequest request;
  request.workload = workload;
  request.streams = streams;
  request.scale = Scale::tiny;
  request.params = std::move(params);
  DeviceInfo info;
  info.precisions = {Precision::fp32};
  return view_of(request, build_run(info, request));
}

// Two streams: the second reads what the first wrote, and the first writes it again in the next iteration.
StepView crossing() {
  StepView result;
  StepBuilder builder(1);
  const BufferId a = builder.uniform(ElementType::f32, 8), b = builder.output(ElementType::f32, 8),
                 c = builder.output(ElementType::f32, 8);
  const KernelShape shape{.dims = {8}};
  builder.launch("gelu", {.stream = 0}, shape, {{a}, {b}});
  builder.launch("gelu", {.stream = 1, .role = 1}, shape, {{b}, {c}});
  builder.work(1);
  result.step = std::move(builder).seal(2);
  result.workload = "a \"b\"";
  result.roles = {"<one>", "two"};
  result.placement = {"natural", 2, {0, 1}};
  result.waits = {{0, 1, false}, {1, 0, true}};
  return result;
}

TEST(Dot, OneClusterPerStreamAndOneNodePerCommand) {
  const std::string text = draw_step(view("hetero_kernels", 4));
  EXPECT_EQ(count(text, "subgraph cluster_"), 5u);  // and the legend
  EXPECT_EQ(count(text, "fillcolor="), 22u);
  EXPECT_EQ(count(text, "#1 chain"), 1u);
  EXPECT_EQ(count(text, "in summary"), 0u);
  EXPECT_EQ(count(text, "{"), count(text, "}"));
}

TEST(Dot, DrawsWaitsBetweenStreamsAndCarriedOnes) {
  const std::string text = draw_step(crossing());
  EXPECT_EQ(count(text, "n0 -> n1 [color="), 1u) << text;
  EXPECT_EQ(count(text, "n1 -> n0 [style=dashed"), 1u) << text;
  EXPECT_NE(text.find("a \\\"b\\\""), std::string::npos) << text;
  EXPECT_NE(text.find("&lt;one&gt;"), std::string::npos) << text;
}

TEST(Dot, OnlyRealWaitsAreInTheView) {
  EXPECT_TRUE(view("tiny_kernel_stress", 4).waits.empty());  // streams that share nothing
}

TEST(Dot, LargeStepsAreDrawnInSummary) {
  const std::string text = draw_step(view("tiny_kernel_stress", 8, {{"operations", "500"}}));
  EXPECT_LT(text.size(), 10'000u);
  EXPECT_NE(text.find("2000 x chain"), std::string::npos) << text;
  EXPECT_NE(text.find("in summary: 16000 commands drawn as 8 nodes"), std::string::npos) << text;
  const std::string least = draw_step(crossing(), 1);  // even streams that wait for each other
  EXPECT_NE(least.find("(streams)"), std::string::npos) << least;
}

TEST(StepText, NamesWhatRuns) {
  const StepView hetero = view("hetero_kernels", 2);
  EXPECT_EQ(command_size(hetero.step, 0), "64 x 64 x 64, f32");
  EXPECT_EQ(command_size(hetero.step, 1), "1024: mul add");
  const std::string text = describe_step(hetero);
  EXPECT_NE(text.find("11: 10 chain, 1 gemm"), std::string::npos) << text;
}

}  // namespace
}  // namespace weir
