// Binary cross-entropy of scores before the sigmoid, weighted by sample: the scaled sum, and its gradient by each
// score. Uses forms that keep their digits if a sigmoid is almost 0 or 1.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

template <class Real>
struct Entropy {
  Entropy(Real score, Real target) {
    const Real tail = std::exp(-std::fabs(score)), less = tail / (1 + tail), more = 1 / (1 + tail);
    const Real positive = score > 0 ? more : less, negative = score > 0 ? less : more;  // sigmoid of score, of -score
    slope = (1 - target) * positive - target * negative;
    value = (score > 0 ? (1 - target) * score : -target * score) + std::log1p(tail);
  }
  Real slope, value;
};

void run_block(const KernelCall& call, std::uint32_t) {
  const float scale = call.shape.scalars[0];
  const float* const targets = operand<const float>(call, 1);
  const float* const weights = operand<const float>(call, 2);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const scores = operand<const T>(call, 0);
    T* const gradient = operand<T>(call, 3);
    const float sum = sum_of(call.shape.dims[0], [&](std::int64_t i) {
      const Entropy<float> entropy(to_float(scores[i]), targets[i]);
      gradient[i] = from_float<T>(scale * weights[i] * entropy.slope);
      return weights[i] * entropy.value;
    });
    operand<float>(call, 4)[0] = scale * sum;
  });
}

void reference(const KernelCall& call) {
  const double scale = call.shape.scalars[0];
  double sum = 0;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < call.shape.dims[0]; ++i) {
      const double weight = operand<const float>(call, 2)[i];
      const Entropy<double> entropy(to_float(operand<const T>(call, 0)[i]), operand<const float>(call, 1)[i]);
      operand<T>(call, 3)[i] = from_double<T>(scale * weight * entropy.slope);
      sum += weight * entropy.value;
    }
  });
  operand<float>(call, 4)[0] = static_cast<float>(scale * sum);
}

}  // namespace

Kernel weighted_bce() {
  return {.name = "weighted_bce",
          .summary = "weighted binary cross-entropy and its gradient",
          // scores, targets, weights, gradient, loss
          .operands = [](const KernelShape&) -> std::string_view { return "rrrww"; },
          .extents = [](const KernelShape& shape) -> Extents {
            const std::int64_t count = shape.dims[0];
            return {count, count, count, count, 1};
          },
          .cost =
              [](const KernelShape& shape) {
                return Cost{18 * shape.dim(0), shape.dim(0) * (2 * element_bytes(shape) + 8) + 4};
              },
          // One block, because there is one sum over one batch of scores.
          .blocks = [](const KernelShape&) { return 1u; },
          .run_block = run_block,
          .reference = reference,
          // Gradients round about 10 times; so does the loss, and 12 rounds add up the results of 256 threads.
          .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 24); },
          .geometry = [](const KernelShape&) { return Geometry{1, kThreads}; },
          .types = "tfftf"};
}

}  // namespace weir::catalogue
