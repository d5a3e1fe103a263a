// Backward kernels against the forward ones: finite differences of what the forward references compute.
#include <gtest/gtest.h>

#include "kernel/launch.h"

namespace weir {
namespace {

// The loss is the sum of weight * output. Inputs are moved by steps that f32 holds exactly, and results differ by f32's
// rounding: with steps of 1/16 and the fourth-order formula that is worth about 1e-6, and the formula's own error less.
class Forward {
 public:
  Forward(std::string_view name, const KernelShape& shape, std::vector<std::vector<double>> inputs,
          std::vector<double> weights)
      : launch_(name, shape), inputs_(std::move(inputs)), weights_(std::move(weights)) {}

  double derivative(std::size_t operand, std::size_t element) {
    const auto difference = [&](double step) {
      return (loss(operand, element, step) - loss(operand, element, -step)) / (2 * step);
    };
    return (4 * difference(kStep) - difference(2 * kStep)) / 3;
  }

 private:
  static constexpr double kStep = 1.0 / 16;

  double loss(std::size_t operand, std::size_t element, double step) {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      for (std::size_t e = 0; e < inputs_[i].size(); ++e)
        launch_.set(i, e, inputs_[i][e] + (i == operand && e == element ? step : 0));
    launch_.body().reference(launch_.call());
    const std::size_t out = launch_.outputs()[0];
    double sum = 0;
    for (std::size_t e = 0; e < weights_.size(); ++e) sum += weights_[e] * launch_.get(out, e);
    return sum;
  }

  Launch launch_;
  std::vector<std::vector<double>> inputs_;
  std::vector<double> weights_;
};

// Multiples of 1/64 in [-2, 2).
std::vector<double> values(std::uint64_t seed, std::size_t count) {
  std::vector<double> all(count);
  for (std::size_t e = 0; e < count; ++e) all[e] = (random_bits(seed, e) % 256) / 64.0 - 2;
  return all;
}

void fill(Launch& launch, std::size_t operand, const std::vector<double>& with) {
  ASSERT_EQ(launch.count(operand), with.size());
  for (std::size_t e = 0; e < with.size(); ++e) launch.set(operand, e, with[e]);
}

constexpr std::size_t kRows = 3, kColumns = 7, kCount = kRows * kColumns;
constexpr double kAllowed = 2e-5;

TEST(Gradient, Softmax) {
  for (const std::int64_t is_causal : {0, 1}) {
    const KernelShape shape{.dims = {kRows, kColumns, is_causal}};
    const std::vector<double> scores = values(1, kCount), weights = values(2, kCount);
    Launch probabilities("softmax", shape), backward("softmax_backward", {.dims = {kRows, kColumns}});
    fill(probabilities, 0, scores);
    probabilities.body().reference(probabilities.call());
    for (std::size_t e = 0; e < kCount; ++e) backward.set(0, e, probabilities.get(1, e));
    fill(backward, 1, weights);
    backward.body().reference(backward.call());
    Forward forward("softmax", shape, {scores}, weights);
    for (std::size_t e = 0; e < kCount; ++e)
      EXPECT_NEAR(backward.get(2, e), forward.derivative(0, e), kAllowed) << is_causal << ' ' << e;
  }
}

TEST(Gradient, Gelu) {
  const KernelShape shape{.dims = {kCount}};
  const std::vector<double> in = values(3, kCount), weights = values(4, kCount);
  Launch backward("gelu_backward", shape);
  fill(backward, 0, in);
  fill(backward, 1, weights);
  backward.body().reference(backward.call());
  Forward forward("gelu", shape, {in}, weights);
  for (std::size_t e = 0; e < kCount; ++e) EXPECT_NEAR(backward.get(2, e), forward.derivative(0, e), kAllowed) << e;
}

TEST(Gradient, LayerNorm) {
  const KernelShape shape{.dims = {kRows, kColumns}, .scalars = {0.5f}};
  const std::vector<double> in = values(5, kCount), gamma = values(6, kColumns), beta = values(7, kColumns);
  const std::vector<double> weights = values(8, kCount);
  Launch by_input("layer_norm_backward", shape), by_parameters("layer_norm_grad", {.dims = {kRows, kColumns}});
  fill(by_input, 0, in);
  fill(by_input, 1, gamma);
  fill(by_input, 2, weights);
  by_input.body().reference(by_input.call());
  fill(by_parameters, 0, in);
  fill(by_parameters, 1, weights);
  for (std::size_t e = 0; e < 2 * kRows; ++e) by_parameters.set(2, e, by_input.get(4, e));
  by_parameters.body().reference(by_parameters.call());

  Forward forward("layer_norm", shape, {in, gamma, beta}, weights);
  // A normalised row bends more than the others: its fifth derivative is worth some 1e-5 here.
  for (std::size_t e = 0; e < kCount; ++e) EXPECT_NEAR(by_input.get(3, e), forward.derivative(0, e), 5 * kAllowed) << e;
  for (std::size_t c = 0; c < kColumns; ++c) {
    EXPECT_NEAR(by_parameters.get(3, c), forward.derivative(1, c), kAllowed) << c;
    EXPECT_NEAR(by_parameters.get(4, c), forward.derivative(2, c), kAllowed) << c;
  }
}

}  // namespace
}  // namespace weir
