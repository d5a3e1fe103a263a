// How matrix products round their operands to fp8: each operand as a whole is scaled by a power of two, so that its
// largest element comes close to the format's largest number, and then rounded to nearest even. Sums are float, and
// what is stored stays bf16. A power of two changes no digit, so that every device rounds to the same values.
#pragma once

#include "kernel/kernel.h"

namespace weir {

// fp8 is about products of bf16 storage, as tf32 is about products of f32. Libraries multiply fp8 matrices only if the
// number of columns is a multiple of 16: on every device, other products stay in bf16.
constexpr bool rounds_to_fp8(const KernelShape& gemm) {
  return is_fp8(gemm.precision) && gemm.type == ElementType::bf16 && gemm.dims[1] % 16 == 0;
}

// One operand's elements, rounded.
class Fp8Operand {
 public:
  Fp8Operand(Precision precision, float scale);

  // Reads all of the operand to find its scale. Ignores NaN and infinity.
  static float scale_of(Precision precision, const Bf16* elements, std::int64_t count);

  // The element as the product sees it, with the scale taken out again: exact in bf16. fp8 has no infinity here: NaN.
  float rounded(Bf16 element) const;

 private:
  const float* values_;  // of the format, by the bits of a bf16
  float scale_, inverse_;
};

// The scales of both operands of a product or of a whole batch, into scalars 2 and 3 of the call. A device calls this
// once per launch, before its blocks run: without it, every block finds them again.
void find_fp8_scales(KernelCall& gemm);

}  // namespace weir
