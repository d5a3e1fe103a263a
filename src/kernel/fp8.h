// How matrix products round their operands to fp8: each operand as a whole is scaled by a power of two, so that its
// largest element comes close to the format's largest number, and then rounded to nearest even. Sums are float, and
// what is stored stays bf16. A power of two changes no digit, so that every device rounds to the same values.
#pragma once

#include "kernel/kernel.h"

namespace weir {

// fp8 is about products of bf16 storage, as tf32 is about products of f32.
constexpr bool rounds_to_fp8(const KernelShape& gemm) {
  return is_fp8(gemm.precision) && gemm.type == ElementType::bf16;
}

// The largest number of the format: 448 or 57344.
float largest_fp8(Precision precision);

// One operand's elements, rounded.
class Fp8Operand {
 public:
  // Reads all of the operand to find its scale. Elements that are no number do not count.
  Fp8Operand(Precision precision, const Bf16* elements, std::int64_t count);

  // The element as the product sees it, with the scale taken out again: exact in bf16.
  float rounded(Bf16 element) const;
  float scale() const { return scale_; }

 private:
  const float* values_;  // of the format, by the bits of a bf16
  float scale_, inverse_;
};

}  // namespace weir
