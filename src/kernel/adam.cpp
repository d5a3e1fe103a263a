// One step of the Adam optimizer in its steady state (no bias correction): updates the averages of the gradient and its
// square, then the parameters. Parameters and averages are f32 for every gradient type.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  const auto [rate, beta1, beta2, epsilon] = call.shape.scalars;
  const Range range = block_range(call.shape.dims[0], kBlockElements, block);
  float* const parameter = operand<float>(call, 1);
  float* const mean = operand<float>(call, 2);
  float* const square = operand<float>(call, 3);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const float gradient = to_float(operand<const T>(call, 0)[i]);
      mean[i] = beta1 * mean[i] + (1 - beta1) * gradient;
      square[i] = beta2 * square[i] + (1 - beta2) * gradient * gradient;
      parameter[i] -= rate * mean[i] / (std::sqrt(square[i]) + epsilon);
    }
  });
}

void reference(const KernelCall& call) {
  const double rate = call.shape.scalars[0], beta1 = call.shape.scalars[1], beta2 = call.shape.scalars[2];
  const double epsilon = call.shape.scalars[3];
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < call.shape.dims[0]; ++i) {
      const double gradient = to_float(operand<const T>(call, 0)[i]);
      const double mean = gradient + beta1 * (operand<float>(call, 2)[i] - gradient);
      const double square = gradient * gradient + beta2 * (operand<float>(call, 3)[i] - gradient * gradient);
      const double parameter = operand<float>(call, 1)[i] - rate * mean / (std::sqrt(square) + epsilon);
      operand<float>(call, 1)[i] = static_cast<float>(parameter);
      operand<float>(call, 2)[i] = static_cast<float>(mean);
      operand<float>(call, 3)[i] = static_cast<float>(square);
    }
  });
}

}  // namespace

Kernel adam() {
  return {.name = "adam",
          .summary = "a step of the Adam optimizer",
          .operands = [](const KernelShape&) -> std::string_view { return "ruuu"; },
          .extents = [](const KernelShape& shape) -> Extents {
            return {shape.dims[0], shape.dims[0], shape.dims[0], shape.dims[0]};
          },
          // Three for the mean, four for the square, five for the parameter; gradients are read, the rest is read and
          // written.
          .cost =
              [](const KernelShape& shape) {
                return Cost{12 * shape.dim(0), shape.dim(0) * (element_bytes(shape) + 6 * 4)};
              },
          .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
          .run_block = run_block,
          .reference = reference,
          // All results are f32. The mean rounds 3 times, and its terms may cancel to a quarter; the square rounds 4
          // times without cancelling, and its root halves that; quotient, product and difference add 4, and the step
          // may cancel half of the parameter.
          .tolerance = [](const KernelShape&) { return storage_tolerance(ElementType::f32, (3 * 4 + 2 + 4) * 2); },
          // adam.cuh: four elements at a time.
          .geometry = [](const KernelShape& shape) { return element_geometry(shape.dims[0], ElementType::f32); },
          .types = "tfff"};
}

}  // namespace weir::catalogue
