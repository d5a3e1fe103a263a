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
    expect("adamw", {.type = type, .dims = {3}, .scalars = {0.9f, 0.999f, 1e-8f, 0}},
           {{4, -0.5, 0}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0.25}},
           {{}, {0.75, 1.25, 1}, {0.4, -0.05, 0}, {0.016, 0.00025, 0}, {}, {0.75, 1.25, 1}});
}

TEST(Adamw, ClipsDecaysAndCountsSteps) {
  // Gradient 8 / 4 = 2; mean (4 + 2) / 2 = 3 of 3/4 that two steps make up: 4; square (12 + 4) / 2 = 8 of 3/4.
  const double size = std::sqrt(8 / 0.75) + 1e-8;
  expect("adamw", {.dims = {1}, .scalars = {0.5f, 0.5f, 1e-8f, 0.25f}}, {{8}, {10}, {4}, {12}, {2, 0.25, 0.5}},
         {{}, {10 * (1 - 0.125) - 0.5 * 4 / size}, {3}, {8}, {2, 0.25, 0.5}});
}

TEST(Adamw, EpsilonKeepsStepsOfSmallGradientsSmall) {
  // A first step would be of the rate's size, but for an epsilon of the gradient's.
  for (const double epsilon : {1.0, 3.0})
    expect("adamw", {.dims = {1}, .scalars = {0.5f, 0.5f, static_cast<float>(epsilon), 0}},
           {{1}, {10}, {0}, {0}, {1, 1, 0.5}}, {{}, {10 - 0.5 / (1 + epsilon)}, {0.5}, {0.5}});
}

TEST(Adamw, RoundsParametersForTheNextGather) {
  Launch launch("adamw", {.type = ElementType::bf16, .dims = {1}, .scalars = {0.9f, 0.999f, 1e-8f, 0}});
  launch.set(4, 2, 0);
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

// The rates of the first steps, from the counter that the kernel itself advances.
std::vector<double> rates(std::array<std::int64_t, kMaxDims> dims, std::array<float, kMaxScalars> scalars, int steps,
                          bool is_reference) {
  Launch launch("clip", {.dims = dims, .scalars = scalars});
  launch.set(1, 0, 0);
  std::vector<double> found;
  for (int i = 0; i < steps; ++i) {
    if (is_reference) {
      launch.body().reference(launch.call());
    } else {
      launch.run(1);
    }
    found.push_back(launch.get(1, 2));
  }
  return found;
}

TEST(Clip, RatesRiseAndFall) {
  const auto expect_rates = [](std::array<std::int64_t, kMaxDims> dims, std::array<float, kMaxScalars> scalars,
                               const std::vector<double>& expected) {
    for (const bool is_reference : {false, true}) {
      const std::vector<double> found = rates(dims, scalars, static_cast<int>(expected.size()), is_reference);
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-7) << "step " << i;
    }
  };
  expect_rates({1, 0, 0, 0}, {1, 0.5f}, {0.5, 0.5, 0.5});
  expect_rates({1, 0, 2, 0}, {1, 0.5f}, {0.25, 0.5, 0.5, 0.5});
  // As AORTA's scheduler: (step + 1) / warm-up, then 1 - (step - warm-up) / (total - warm-up), and 0 from there.
  expect_rates({1, 1, 4, 8}, {1, 1}, {0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25, 0, 0});
  expect_rates({1, 1, 0, 4}, {1, 1, 0.2f}, {1, 0.8, 0.6, 0.4, 0.2, 0.2});
  const double half = std::sqrt(0.5) / 2;
  expect_rates({1, 2, 1, 5}, {1, 1}, {1, 1, 0.5 + half, 0.5, 0.5 - half, 0, 0});
  expect_rates({1, 2, 0, 2}, {1, 1, 0.5f}, {1, 0.75, 0.5, 0.5});
}

Launch dropped(std::array<std::int64_t, kMaxDims> dims, float probability, double done, double key) {
  Launch launch("dropout", {.dims = dims, .scalars = {probability, 1 / (1 - probability)}});
  for (std::size_t e = 0; e < launch.count(0); ++e) launch.set(0, e, static_cast<double>(e + 1));
  launch.set(1, 0, done);
  launch.set(2, 0, key);
  launch.run(1);
  return launch;
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  constexpr std::int64_t kCount = 100'000;
  for (const float probability : {0.0f, 0.1f, 0.5f, 0.9f}) {
    const Launch launch = dropped({1, kCount, 0, 0}, probability, 3, 17);
    int zeros = 0;
    for (std::size_t e = 0; e < kCount; ++e) {
      const double value = launch.get(3, e);
      zeros += value == 0 ? 1 : 0;
      if (value == 0) continue;
      ASSERT_NEAR(value, static_cast<double>(e + 1) / (1 - static_cast<double>(probability)), value * 1e-6);
    }
    // Within five standard deviations.
    const double share = static_cast<double>(probability), expected = share * kCount;
    EXPECT_NEAR(zeros, expected, 5 * std::sqrt(expected * (1 - share))) << probability;
  }
}

TEST(Dropout, DrawsAnewForEveryStepAndKey) {
  constexpr std::int64_t kCount = 20'000;
  const auto kept = [](double done, double key) {
    const Launch launch = dropped({1, kCount, 0, 0}, 0.5f, done, key);
    std::vector<bool> mask;
    for (std::size_t e = 0; e < kCount; ++e) mask.push_back(launch.get(3, e) != 0);
    return mask;
  };
  const std::vector<bool> first = kept(0, 5);
  EXPECT_EQ(first, kept(0, 5));
  for (const auto& other : {kept(1, 5), kept(0, 6), kept(1, 4)}) {
    int same = 0;
    for (std::size_t e = 0; e < kCount; ++e) same += first[e] == other[e] ? 1 : 0;
    EXPECT_NEAR(same, kCount / 2, 5 * std::sqrt(kCount) / 2) << "independent";
  }
}

// Rows of [tokens][samples] that two ranks hold half of each.
TEST(Dropout, DrawsByThePlaceInTheWhole) {
  constexpr std::int64_t kRows = 7, kWidth = 60, kHalf = kWidth / 2;
  const Launch whole = dropped({kRows, kWidth, kWidth, 0}, 0.4f, 2, 9);
  for (const std::int64_t first : {std::int64_t{0}, kHalf}) {
    const Launch part = dropped({kRows, kHalf, kWidth, first}, 0.4f, 2, 9);
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t c = 0; c < kHalf; ++c)
        ASSERT_EQ(part.get(3, static_cast<std::size_t>(r * kHalf + c)) == 0,
                  whole.get(3, static_cast<std::size_t>(r * kWidth + first + c)) == 0);
  }
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
