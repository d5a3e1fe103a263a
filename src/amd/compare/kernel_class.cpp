#include "amd/compare/kernel_class.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace weir::amd {
namespace {

struct ClassWord {
  std::string_view word;  // in lower case
  KernelClass kernel_class;
};

// The first that a name contains decides: a fused attention kernel has a softmax in it, and a convolution a product.
constexpr ClassWord kWords[] = {
    {"attention", KernelClass::attention},
    {"flash", KernelClass::attention},
    {"fmha", KernelClass::attention},
    {"_attn", KernelClass::attention},
    {"attn_", KernelClass::attention},
    {"batch_norm", KernelClass::normalisation},
    {"batchnorm", KernelClass::normalisation},
    {"layer_norm", KernelClass::normalisation},
    {"layernorm", KernelClass::normalisation},
    {"group_norm", KernelClass::normalisation},
    {"groupnorm", KernelClass::normalisation},
    {"rms_norm", KernelClass::normalisation},
    {"rmsnorm", KernelClass::normalisation},
    {"bn_fwd", KernelClass::normalisation},
    {"max_pool", KernelClass::pooling},
    {"avg_pool", KernelClass::pooling},
    {"maxpool", KernelClass::pooling},
    {"avgpool", KernelClass::pooling},
    {"pooling", KernelClass::pooling},
    {"im2col", KernelClass::convolution},
    {"igemm", KernelClass::convolution},
    {"implicit_gemm", KernelClass::convolution},
    {"winograd", KernelClass::convolution},
    {"conv", KernelClass::convolution},
    {"softmax", KernelClass::softmax},
    {"gemm", KernelClass::matmul},
    {"gemv", KernelClass::matmul},
    {"matmul", KernelClass::matmul},
    {"cijk_", KernelClass::matmul},  // Tensile: rocBLAS and hipBLASLt
    {"xmma", KernelClass::matmul},
    {"cutlass", KernelClass::matmul},
    {"elementwise", KernelClass::elementwise},
    {"pointwise", KernelClass::elementwise},
    {"op2dtensor", KernelClass::elementwise},
    {"optensor", KernelClass::elementwise},
    {"activ", KernelClass::elementwise},
    {"relu", KernelClass::elementwise},
    {"gelu", KernelClass::elementwise},
    {"silu", KernelClass::elementwise},
    {"sigmoid", KernelClass::elementwise},
    {"dropout", KernelClass::elementwise},
    {"bias", KernelClass::elementwise},
};

// Whole names of Weir's own kernels, which have no such word.
constexpr std::string_view kOwnElementwise[] = {"add", "chain", "fill", "copy", "clip", "adam", "adamw", "dropout"};

}  // namespace

std::string_view name_of(KernelClass kernel_class) {
  constexpr std::string_view kNames[] = {"convolution", "pooling",   "normalisation", "matmul",
                                         "softmax",     "attention", "elementwise",   "other"};
  return kNames[static_cast<std::size_t>(kernel_class)];
}

// MIOpenBatchNormFwdInferSpatial, Cijk_Ailk_Bljk_SB_MT128x96x16, miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1,
// void at::native::vectorized_elementwise_kernel<4, ...>, im2col
KernelClass class_of(std::string_view kernel) {
  if (std::find(std::begin(kOwnElementwise), std::end(kOwnElementwise), kernel) != std::end(kOwnElementwise))
    return KernelClass::elementwise;
  std::string name(kernel);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto& [word, kernel_class] : kWords) {
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      // "convert" and "conversion" change a type.
      if (word == "conv" && (name.compare(at, 6, "conver") == 0)) continue;
      return kernel_class;
    }
  }
  return KernelClass::other;
}

}  // namespace weir::amd
