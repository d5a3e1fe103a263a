// What an optimizer needs before a step: the step's number, and the factor on gradients that keeps their norm below a
// limit. Computed from sums of squares; state is {number of the step, factor}.
#include "kernel/body.h"

namespace weir::catalogue {
namespace {

constexpr float kMargin = 1e-6f;  // same value in clip.cuh and clip.cl: avoids a division by a norm of 0

void run_block(const KernelCall& call, std::uint32_t) {
  const float* const squares = operand<const float>(call, 0);
  float* const state = operand<float>(call, 1);
  const float limit = call.shape.scalars[0];
  const float norm = std::sqrt(sum_of(call.shape.dims[0], [&](std::int64_t i) { return squares[i]; }));
  state[0] += 1;
  state[1] = limit > 0 ? std::min(1.0f, limit / (norm + kMargin)) : 1.0f;
}

void reference(const KernelCall& call) {
  double sum = 0;
  for (std::int64_t i = 0; i < call.shape.dims[0]; ++i) sum += operand<const float>(call, 0)[i];
  const double limit = call.shape.scalars[0], allowed = limit / (std::sqrt(sum) + static_cast<double>(kMargin));
  float* const state = operand<float>(call, 1);
  state[0] += 1;
  state[1] = limit > 0 && allowed < 1 ? static_cast<float>(allowed) : 1.0f;
}

}  // namespace

Kernel clip() {
  return {.name = "clip",
          .summary = "the next step's number and the factor that limits its gradients",
          .operands = [](const KernelShape&) -> std::string_view { return "ru"; },
          .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], 2}; },
          .cost = [](const KernelShape& shape) { return Cost{shape.dim(0) + 4, 4 * shape.dim(0) + 16}; },
          .blocks = [](const KernelShape&) { return 1u; },
          .run_block = run_block,
          .reference = reference,
          // 15 for the sum of squares as in square_sum, halved by the root; then the root, the margin, the quotient.
          .tolerance = [](const KernelShape&) { return storage_tolerance(ElementType::f32, 8 + 3); },
          // clip.cuh: one block, because there is only one number to compute.
          .geometry = [](const KernelShape&) { return Geometry{1, kThreads}; },
          .types = "ff"};
}

}  // namespace weir::catalogue
