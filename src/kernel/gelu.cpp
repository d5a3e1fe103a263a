// GELU in its exact form: x times the probability that a normal variable is below x.
#include <numbers>

#include "kernel/body.h"

namespace weir::catalogue {
namespace {

// erfc keeps the digits that 1 + erf would cancel for x far below 0.
void run_block(const KernelCall& call, std::uint32_t block) {
  constexpr float kHalfRoot = 0.70710678f;  // 1 / sqrt(2)
  const Range range = block_range(call.shape.dims[0], kBlockElements, block);
  with_float_type(call.shape.type, [&]<class T>(T*) {
    const T* const in = operand<const T>(call, 0);
    T* const out = operand<T>(call, 1);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const float x = to_float(in[i]);
      out[i] = from_float<T>(0.5f * x * std::erfc(-x * kHalfRoot));
    }
  });
}

void reference(const KernelCall& call) {
  with_float_type(call.shape.type, [&]<class T>(T*) {
    for (std::int64_t i = 0; i < call.shape.dims[0]; ++i) {
      const double x = to_float(operand<const T>(call, 0)[i]);
      operand<T>(call, 1)[i] = from_double<T>(x * (0.5 + 0.5 * std::erf(x / std::numbers::sqrt2)));
    }
  });
}

}  // namespace

Kernel gelu() {
  return {
      .name = "gelu",
      .summary = "Gaussian error linear unit, erf form",
      .operands = [](const KernelShape&) -> std::string_view { return "rw"; },
      .extents = [](const KernelShape& shape) -> Extents { return {shape.dims[0], shape.dims[0]}; },
      // Nominal: an erf counts as 5.
      .cost = [](const KernelShape& shape) { return Cost{8 * shape.dim(0), 2 * shape.dim(0) * element_bytes(shape)}; },
      .blocks = [](const KernelShape& shape) { return block_count(shape.dims[0], kBlockElements); },
      .run_block = run_block,
      .reference = reference,
      // erfc is good to 4 units in the last place (8 roundings) and multiplies its argument's two roundings by up to
      // z^2 = x^2 / 2; below x = -4 results are negligible beside others.
      .tolerance = [](const KernelShape& shape) { return storage_tolerance(shape.type, 8 + 16 + 2); },
      .geometry = element_geometry};
}

}  // namespace weir::catalogue
