// Gradient of GELU: dy times (the probability that a normal variable is below x, plus x times its density at x).
#include <numbers>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

void run_block(const KernelCall& call, std::uint32_t block) {
  constexpr float kHalfRoot = 0.70710678f;   // 1 / sqrt(2)
  constexpr float kDensity0 = 0.398942280f;  // 1 / sqrt(2 pi)
  const Range range = block_range(call.shape.dims[0], kBlockElements, block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const in = operand<const T>(call, 0);
    const T* const dy = operand<const T>(call, 1);
    T* const out = operand<T>(call, 2);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const float x = to_float(in[i]);
      const float slope = 0.5f * std::erfc(-x * kHalfRoot) + x * kDensity0 * std::exp(-0.5f * x * x);
      out[i] = from_float<T>(to_float(dy[i]) * slope);
    }
  });
}

void reference(const KernelCall& call) {
  using namespace std::numbers;
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < call.shape.dims[0]; ++i) {
      const double x = to_float(operand<const T>(call, 0)[i]);
      const double below = 0.5 + 0.5 * std::erf(x / sqrt2), density = std::exp(-x * x / 2) * inv_sqrtpi / sqrt2;
      operand<T>(call, 2)[i] = from_double<T>(to_float(operand<const T>(call, 1)[i]) * (below + x * density));
    }
  });
}

}  // namespace

Kernel gelu_backward() {
  return {
      .name = "gelu_backward",
      .summary = "gradient of gelu by its input",
      .operands = [](const KernelShape&) -> std::string_view { return "rrw"; },
      .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[0], shape.dims[0]}; },
      // Nominal: an erf counts as 5, an exp as 4.
      .cost = [](const KernelShape& shape) { return Cost{17 * shape.dim(0), 3 * shape.dim(0) * element_bytes(shape)}; },
      .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
      .run_block = run_block,
      .reference = reference,
      // The slope is at most 1.13; erfc contributes 8 roundings, and its argument, the density and the sum together
      // less than 8. dy is up to 4 times as large as typical results.
      .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, (8 + 8) * 4 + 1); },
      .geometry = element_geometry};
}

}  // namespace weir::catalogue
