// One step of AdamW: bias correction, decoupled weight decay, gradients scaled by the clip factor. Parameters and
// averages are f32 for every gradient type; the next step computes with a rounded copy of the parameters.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// Values common to all elements: state is {number of this step, clip factor, learning rate}, scalars are {beta1, beta2,
// epsilon, decay}.
struct Rates {
  explicit Rates(const KernelCall& call)
      : step(operand<const float>(call, 4)[0]),
        clip(operand<const float>(call, 4)[1]),
        rate(operand<const float>(call, 4)[2]),
        beta1(call.shape.scalars[0]),
        beta2(call.shape.scalars[1]),
        epsilon(call.shape.scalars[2]),
        kept(1 - rate * call.shape.scalars[3]),
        mean_share(1 - std::pow(beta1, step)),
        square_share(1 - std::pow(beta2, step)) {}
  double step, clip, rate, beta1, beta2, epsilon;
  double kept;                      // share of a parameter that decay leaves
  double mean_share, square_share;  // share of the averages that is from gradients: they began at 0
};

void run_block(const KernelCall& call, std::uint32_t block) {
  const Rates rates(call);
  const auto clip = static_cast<float>(rates.clip), beta1 = static_cast<float>(rates.beta1);
  const auto beta2 = static_cast<float>(rates.beta2), kept = static_cast<float>(rates.kept);
  const auto epsilon = static_cast<float>(rates.epsilon);
  const auto rate = static_cast<float>(rates.rate / rates.mean_share);
  const auto correction = static_cast<float>(1 / std::sqrt(rates.square_share));
  const Range range = block_range(call.shape.dims[0], kBlockElements, block);
  float* const parameter = operand<float>(call, 1);
  float* const mean = operand<float>(call, 2);
  float* const square = operand<float>(call, 3);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    T* const low = operand<T>(call, 5);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const float gradient = clip * to_float(operand<const T>(call, 0)[i]);
      mean[i] = beta1 * mean[i] + (1 - beta1) * gradient;
      square[i] = beta2 * square[i] + (1 - beta2) * gradient * gradient;
      const float size = std::sqrt(square[i]) * correction + epsilon;
      parameter[i] = kept * parameter[i] - rate * mean[i] / size;
      low[i] = from_float<T>(parameter[i]);
    }
  });
}

void reference(const KernelCall& call) {
  const Rates rates(call);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < call.shape.dims[0]; ++i) {
      const double gradient = rates.clip * to_float(operand<const T>(call, 0)[i]);
      const double mean = gradient + rates.beta1 * (operand<float>(call, 2)[i] - gradient);
      const double square = gradient * gradient + rates.beta2 * (operand<float>(call, 3)[i] - gradient * gradient);
      const double corrected = mean / rates.mean_share;
      const double size = std::sqrt(square / rates.square_share) + rates.epsilon;
      const double parameter = operand<float>(call, 1)[i] * rates.kept - rates.rate * corrected / size;
      operand<float>(call, 1)[i] = static_cast<float>(parameter);
      operand<float>(call, 2)[i] = static_cast<float>(mean);
      operand<float>(call, 3)[i] = static_cast<float>(square);
      operand<T>(call, 5)[i] = from_double<T>(parameter);
    }
  });
}

}  // namespace

Kernel adamw() {
  return {
      .name = "adamw",
      .summary = "a step of AdamW, and the parameters rounded",
      // gradient, parameter, mean, square, state, rounded parameter
      .operands = [](const KernelShape&) -> std::string_view { return "ruuurw"; },
      .extents = [](const KernelShape& shape) -> Extents {
        const std::int64_t count = shape.dims[0];
        return {count, count, count, count, 3, count};
      },
      // One to clip, three for the mean, four for the square, seven for the parameter.
      .cost =
          [](const KernelShape& shape) {
            return Cost{15 * shape.dim(0), shape.dim(0) * (2 * element_bytes(shape) + 6 * 4) + 12};
          },
      .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
      .run_block = run_block,
      .reference = reference,
      // Like adam, with one more rounding for the clipped gradient: 4 of the mean, which may cancel to a quarter, 6 of
      // the square, halved by its root. Each correction rounds about 5 times (log, product, expm1), one of them under a
      // root; quotient, products and difference add 6. The step may cancel half of the parameter. The rounded
      // parameters have the launch's type, and one tolerance serves all outputs.
      .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, (4 * 4 + 3 + 5 + 3 + 6) * 2); },
      // adamw.cuh: four elements at a time.
      .geometry = [](const KernelShape& shape) { return element_geometry(shape.dims[0], ElementType::f32); },
      .types = "tfffft"};
}

}  // namespace weir::catalogue
