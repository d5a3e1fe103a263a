// What training needs besides layers, worked out by hand: optimizer, clipping, norms, cross-entropy, gradients of
// tables. Bodies and references alike.
#include <gtest/gtest.h>

#include "kernel/launch.h"

namespace weir {
namespace {

// Sets operands and expects results, of the body and of the reference, operand by operand; empty: not looked at.
void expect(std::string_view name, const KernelShape& shape, const std::vector<std::vector<double>>& before,
            const std::vector<std::vector<double>>& after, double allowed = 2e-6) {
  Launch ours(name, shape);
  for (std::size_t i = 0; i < before.size(); ++i)
    for (std::size_t e = 0; e < before[i].size(); ++e) ours.set(i, e, before[i][e]);
  Launch theirs(ours);
  ours.run(1);
  theirs.body().reference(theirs.call());
  for (std::size_t i = 0; i < after.size(); ++i)
    for (std::size_t e = 0; e < after[i].size(); ++e) {
      EXPECT_NEAR(ours.get(i, e), after[i][e], allowed) << name << ' ' << i << ' ' << e;
      EXPECT_NEAR(theirs.get(i, e), after[i][e], allowed) << name << ' ' << i << ' ' << e << " (reference)";
    }
}

TEST(Adamw, CorrectsItsFirstStepsToTheSizeOfTheRate) {
  // From averages of 0 both corrections cancel what beta left out: a step of `rate` against the gradient's sign.
  for (const ElementType type : kFloats)
    expect("adamw", {.type = type, .dims = {3}, .scalars = {0.25f, 0.9f, 0.999f, 0}},
           {{4, -0.5, 0}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1}},
           {{}, {0.75, 1.25, 1}, {0.4, -0.05, 0}, {0.016, 0.00025, 0}, {}, {0.75, 1.25, 1}});
}

TEST(Adamw, ClipsDecaysAndCountsSteps) {
  // Gradient 8 / 4 = 2; mean (4 + 2) / 2 = 3 of 3/4 that two steps make up: 4; square (12 + 4) / 2 = 8 of 3/4.
  const double size = std::sqrt(8 / 0.75) + 1e-8;
  expect("adamw", {.dims = {1}, .scalars = {0.5f, 0.5f, 0.5f, 0.25f}}, {{8}, {10}, {4}, {12}, {2, 0.25}},
         {{}, {10 * (1 - 0.125) - 0.5 * 4 / size}, {3}, {8}, {2, 0.25}});
}

TEST(Adamw, RoundsParametersForTheNextGather) {
  Launch launch("adamw", {.type = ElementType::bf16, .dims = {1}, .scalars = {0, 0.9f, 0.999f, 0}});
  launch.set(1, 0, 1.0 + 1.0 / 512 + 1.0 / 4096);  // less than half of the 1/128 to the next bf16
  launch.run(1);
  EXPECT_EQ(launch.get(1, 0), 1.0 + 1.0 / 512 + 1.0 / 4096) << "the master keeps all of its digits";
  EXPECT_EQ(launch.get(5, 0), 1.0);
}

TEST(Clip, LimitsTheNormAndAdvancesTheStep) {
  expect("clip", {.dims = {3}, .scalars = {2}}, {{9, 4, 3}, {6, 0.5}}, {{}, {7, 0.5}});
  expect("clip", {.dims = {3}, .scalars = {5}}, {{9, 4, 3}, {0, 0}}, {{}, {1, 1}});
  expect("clip", {.dims = {3}, .scalars = {0}}, {{9, 4, 3}, {0, 0}}, {{}, {1, 1}});
  expect("clip", {.dims = {1}, .scalars = {1}}, {{0}, {0, 0}}, {{}, {1, 1}});
}

TEST(SquareSum, HasASumPerPart) {
  // Parts begin at multiples of 8, so the third one has the rest, and a fourth none.
  std::vector<double> ones(20, 1);
  ones[0] = -3;
  for (const ElementType type : kFloats)
    expect("square_sum", {.type = type, .dims = {20, 4}}, {ones}, {{}, {16, 8, 4, 0}});
}

TEST(SquareSum, DoesNotDrift) {
  Launch launch("square_sum", {.dims = {1'000'000, 1}});
  for (std::size_t e = 0; e < launch.count(0); ++e) launch.set(0, e, 0.1f);
  launch.run(1);
  EXPECT_NEAR(launch.get(1, 0), 1e4, 1e-2);
}

TEST(WeightedBce, IsTheEntropyAndItsSlope) {
  const double ln2 = std::log(2.0);
  expect("weighted_bce", {.dims = {2}, .scalars = {0.5f}}, {{0, 0}, {1, 0}, {3, 1}},
         {{}, {}, {}, {0.5 * 3 * -0.5, 0.5 * 0.5}, {0.5 * 4 * ln2}});
  // Far out nothing overflows, and what is left of a sigmoid keeps its digits.
  expect("weighted_bce", {.dims = {4}, .scalars = {1}}, {{200, -200, 200, -200}, {1, 0, 0, 1}, {1, 1, 1, 1}},
         {{}, {}, {}, {0, 0, 1, -1}, {400}}, 1e-4);
  Launch tail("weighted_bce", {.dims = {1}, .scalars = {1}});
  tail.set(0, 0, 20);
  tail.set(1, 0, 1);
  tail.set(2, 0, 1);
  tail.run(1);
  EXPECT_NEAR(tail.get(3, 0) / -std::exp(-20.0), 1, 1e-5);
}

TEST(WeightedBce, GradientIsThatOfItsLoss) {
  constexpr std::size_t kCount = 7;
  const KernelShape shape{.dims = {kCount}, .scalars = {0.25f}};
  Launch launch("weighted_bce", shape);
  launch.body().reference(launch.call());
  constexpr double kStep = 1.0 / 64;
  for (std::size_t e = 0; e < kCount; ++e) {
    const auto loss = [&](double step) {
      Launch moved(launch);
      moved.set(0, e, launch.get(0, e) + step);
      moved.body().reference(moved.call());
      return moved.get(4, 0);
    };
    EXPECT_NEAR(launch.get(3, e), (loss(kStep) - loss(-kStep)) / (2 * kStep), 3e-5) << e;
  }
}

TEST(EmbeddingGrad, AddsWhatCameBackForEachRow) {
  for (const ElementType type : kFloats) {
    const std::vector<std::vector<double>> before = {
        {1, -1, 1, 3, 0}, {1, 2, 10, 20, 3, 4, 30, 40, 5, 6}, {9, 9, 9, 9, 9, 9}};
    expect("embedding_grad", {.type = type, .dims = {5, 2, 3}}, before, {{}, {}, {5, 6, 4, 6, 0, 0}});
    expect("embedding_grad", {.type = type, .dims = {5, 2, 3}, .scalars = {1}}, before,
           {{}, {}, {14, 15, 13, 15, 9, 9}});
  }
}

// <w, gather(table)> = <embedding_grad(w), table>
TEST(EmbeddingGrad, IsTheAdjointOfGather) {
  constexpr std::int64_t kCount = 50, kWidth = 9, kRows = 11;
  Launch gather("gather", {.dims = {kCount, kWidth, kRows}}), grad("embedding_grad", {.dims = {kCount, kWidth, kRows}});
  for (std::size_t e = 0; e < kCount; ++e) gather.set(1, e, grad.get(0, e));
  gather.run(1);
  grad.run(2);
  double forward = 0, backward = 0;
  for (std::size_t e = 0; e < gather.count(2); ++e) forward += gather.get(2, e) * grad.get(1, e);
  for (std::size_t e = 0; e < gather.count(0); ++e) backward += gather.get(0, e) * grad.get(2, e);
  EXPECT_NEAR(forward, backward, 1e-4 * std::fabs(forward) + 1e-4);
}

}  // namespace
}  // namespace weir
