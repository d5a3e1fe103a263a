#include "kernel/fp8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "kernel/gemm.h"
#include "weir/host.h"

namespace weir {
namespace {

using Values = std::array<float, 1 << 16>;

template <class Fp8>
const float* values() {
  static const std::unique_ptr<const Values> kValues = [] {
    auto made = std::make_unique<Values>();
    for (std::size_t bits = 0; bits < made->size(); ++bits) {
      const float value = to_float(Bf16{static_cast<std::uint16_t>(bits)});
      // Infinity would become the largest number, and an overflow would look like a result.
      (*made)[bits] = std::isfinite(value) ? static_cast<float>(Fp8(value)) : std::numeric_limits<float>::quiet_NaN();
    }
    return made;
  }();
  return kValues->data();
}

float largest_fp8(Precision precision) { return precision == Precision::fp8_e4m3 ? 448.0f : 57344.0f; }

}  // namespace

Fp8Operand::Fp8Operand(Precision precision, float scale)
    : values_(precision == Precision::fp8_e4m3 ? values<Fp8E4m3>() : values<Fp8E5m2>()),
      scale_(scale),
      inverse_(1 / scale) {}

float Fp8Operand::scale_of(Precision precision, const Bf16* elements, std::int64_t count) {
  // Without their signs, bf16 numbers are ordered as their bits are.
  constexpr int kInfinity = 0x7f80;
  int largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const int size = elements[i].bits & 0x7fff;
    largest = std::max(largest, size < kInfinity ? size : 0);
  }
  const float found = to_float(Bf16{static_cast<std::uint16_t>(largest)});
  // Within the exponents that leave a float's own range unharmed.
  const int power = largest == 0 ? 0 : std::clamp(std::ilogb(largest_fp8(precision)) - std::ilogb(found), -126, 126);
  const float scale = std::ldexp(1.0f, power);
  // The largest number has all digits but the last set, and the element may have more.
  return found * scale > largest_fp8(precision) ? scale / 2 : scale;
}

float Fp8Operand::rounded(Bf16 element) const {
  return values_[from_float<Bf16>(to_float(element) * scale_).bits] * inverse_;
}

void find_fp8_scales(KernelCall& gemm) {
  const auto [m, n, k, flags] = gemm.shape.dims;
  const std::int64_t batch = gemm_batch(gemm.shape);
  gemm.shape.scalars[2] =
      Fp8Operand::scale_of(gemm.shape.precision, static_cast<const Bf16*>(gemm.operands[0]), batch * m * k);
  gemm.shape.scalars[3] =
      Fp8Operand::scale_of(gemm.shape.precision, static_cast<const Bf16*>(gemm.operands[1]), batch * k * n);
}

}  // namespace weir
