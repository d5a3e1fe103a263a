// Two traces by operator and shapes: fates, and sums that are exact.
#include "run/operator_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace weir {
namespace {

// A trace of one device; each work() is a call of an operator and its kernel.
class Made {
 public:
  Made() {
    timeline_.has_operations = true;
    timeline_.processes = {{0, "rank"}};
    timeline_.devices = {{0, 0, "GPU 0"}};
    timeline_.streams = {{0, 7, "stream 7"}};
  }
  Made& work(const std::string& name, const std::string& shapes, const std::string& kernel, std::int64_t at,
             std::int64_t ns) {
    HostCall call;
    call.kind = CallKind::launch;
    call.started_ns = at;
    call.ended_ns = at + 1;
    if (!name.empty()) {
      Operation operation;
      operation.name = number_of(name);
      if (!shapes.empty()) operation.shapes = number_of(shapes);
      call.operation = static_cast<std::uint32_t>(timeline_.operations.size());
      timeline_.operations.push_back(operation);
    }
    Span span;
    span.name = number_of(kernel);
    span.call = static_cast<std::uint32_t>(timeline_.calls.size());
    span.submitted_ns = span.started_ns = at;
    span.ended_ns = at + ns;
    timeline_.calls.push_back(call);
    timeline_.spans.push_back(span);
    return *this;
  }
  Made& step(int number, std::int64_t from, std::int64_t to) {
    timeline_.ranges.push_back({number_of("ProfilerStep#" + std::to_string(number)), 0, from, to});
    return *this;
  }
  Timeline& timeline() {
    std::stable_sort(timeline_.spans.begin(), timeline_.spans.end(),
                     [](const Span& a, const Span& b) { return a.started_ns < b.started_ns; });
    return timeline_;
  }

 private:
  std::uint32_t number_of(const std::string& text) {
    const auto at = std::find(timeline_.names.begin(), timeline_.names.end(), text);
    if (at != timeline_.names.end()) return static_cast<std::uint32_t>(at - timeline_.names.begin());
    timeline_.names.push_back(text);
    return static_cast<std::uint32_t>(timeline_.names.size() - 1);
  }
  Timeline timeline_;
};

const OperatorChange& change_of(const OperatorComparison& found, const std::string& name,
                                const std::string& shapes = "") {
  for (const OperatorChange& change : found.changes)
    if (change.name == name && change.shapes == shapes) return change;
  throw std::runtime_error("no such operator: " + name);
}

std::int64_t sum_of(const OperatorComparison& found) {
  return std::accumulate(found.changes.begin(), found.changes.end(),
                         found.left_out_ns + found.outside_ns + found.rest_ns,
                         [](std::int64_t sum, const OperatorChange& change) { return sum + change.difference_ns(); });
}

TEST(OperatorCompare, says_what_became_of_each_operator) {
  Made before, after;
  before.step(1, 0, 1000).step(2, 1000, 2000);
  after.step(7, 0, 1500);
  for (const std::int64_t step : {0, 1000})
    before.work("aten::mm", "f32 [8]", "gemm", step, 100)
        .work("aten::mm", "f32 [9]", "gemm", step + 100, 100)
        .work("aten::add", "", "add", step + 200, 50)
        .work("aten::relu", "", "relu", step + 300, 10)
        .work("aten::gelu", "", "gelu", step + 400, 40)
        .work("", "", "alone", step + 500, 7);
  after.work("aten::mm", "f32 [8]", "gemm", 0, 150)
      .work("aten::mm", "f32 [9]", "gemm", 200, 100)
      .work("aten::add", "", "fused_add", 400, 20)
      .work("aten::gelu", "", "gelu", 500, 20)
      .work("aten::silu", "", "silu", 600, 30)
      .work("", "", "alone", 700, 9);
  const OperatorComparison found = compare_operators(before.timeline(), after.timeline(), 0.05);
  ASSERT_EQ(found.reason, "");
  EXPECT_TRUE(found.is_per_step);
  EXPECT_EQ(found.baseline_ns, 1000);
  EXPECT_EQ(found.test_ns, 1500);
  EXPECT_EQ(change_of(found, "aten::mm", "f32 [8]").fate, OperatorFate::slower);
  EXPECT_EQ(change_of(found, "aten::mm", "f32 [8]").baseline.ns, 100) << "of one step";
  EXPECT_EQ(change_of(found, "aten::mm", "f32 [8]").difference_ns(), 50);
  EXPECT_EQ(change_of(found, "aten::mm", "f32 [9]").fate, OperatorFate::same);
  EXPECT_EQ(change_of(found, "aten::add").fate, OperatorFate::moved);
  EXPECT_EQ(change_of(found, "aten::add").test.kernel, "fused_add");
  EXPECT_EQ(change_of(found, "aten::relu").fate, OperatorFate::gone);
  EXPECT_EQ(change_of(found, "aten::relu").difference_ns(), -10);
  EXPECT_EQ(change_of(found, "aten::gelu").fate, OperatorFate::faster);
  EXPECT_EQ(change_of(found, "aten::silu").fate, OperatorFate::fresh);
  EXPECT_EQ(found.outside_ns, 2);
  EXPECT_EQ(found.changes[0].difference_ns(), 50) << "the largest difference first";
  EXPECT_EQ(sum_of(found), 500);
}

TEST(OperatorCompare, compares_whole_traces_where_one_marks_no_steps) {
  Made before, after;
  before.step(1, 0, 1000).work("aten::mm", "", "gemm", 100, 100).work("aten::mm", "", "gemm", 300, 100);
  after.work("aten::mm", "", "gemm", 100, 100);
  const OperatorComparison found = compare_operators(before.timeline(), after.timeline(), 0.05);
  EXPECT_FALSE(found.is_per_step);
  EXPECT_EQ(found.baseline_ns, 300) << "from the first start to the last end";
  EXPECT_EQ(found.test_ns, 100);
  EXPECT_EQ(found.changes.at(0).difference_ns(), -100);
  EXPECT_EQ(found.rest_ns, -100) << "idle time";
}

TEST(OperatorCompare, needs_operators) {
  Made before, after;
  before.work("aten::mm", "", "gemm", 0, 1);
  after.work("", "", "gemm", 0, 1);
  EXPECT_EQ(compare_operators(before.timeline(), after.timeline(), 0.05).reason, "");
  EXPECT_NE(compare_operators(after.timeline(), after.timeline(), 0.05).reason, "");
  after.timeline().has_operations = false;
  const OperatorComparison found = compare_operators(before.timeline(), after.timeline(), 0.05);
  EXPECT_NE(found.reason.find("--operators"), std::string::npos);
  EXPECT_TRUE(operator_comparison_json(found).is_null());
}

TEST(OperatorCompare, differences_add_up_exactly) {
  std::mt19937_64 random(20261119);
  const auto below = [&](std::uint64_t limit) { return static_cast<std::int64_t>(random() % limit); };
  bool had_left_out = false;
  for (int round = 0; round < 100; ++round) {
    Made sides[2];
    for (Made& side : sides) {
      const std::int64_t steps = round % 3 == 0 ? 0 : 1 + below(7);
      for (std::int64_t step = 0; step < steps; ++step)
        side.step(static_cast<int>(step), 10'000 * step, 10'000 * step + 9'000 + below(1'000));
      for (std::int64_t i = 0, all = 1 + below(600); i < all; ++i)
        side.work(below(5) == 0 ? "" : "op" + std::to_string(below(static_cast<std::uint64_t>(1 + 3 * round))), "",
                  "k" + std::to_string(below(3)), below(80'000), below(700));
    }
    const OperatorComparison found = compare_operators(sides[0].timeline(), sides[1].timeline(), 0.05);
    if (!found.reason.empty()) continue;
    ASSERT_EQ(sum_of(found), found.test_ns - found.baseline_ns) << "round " << round;
    ASSERT_LE(found.changes.size(), kMaxOperatorChanges);
    had_left_out = had_left_out || found.left_out > 0;
  }
  EXPECT_TRUE(had_left_out);
}

}  // namespace
}  // namespace weir
