// Names of kernels as libraries give them, and what they are for.
#include "amd/compare/kernel_class.h"

#include <gtest/gtest.h>

namespace weir::amd {
namespace {

TEST(KernelClass, of_names_that_libraries_give) {
  using enum KernelClass;
  const std::pair<const char*, KernelClass> names[] = {
      {"MIOpenBatchNormFwdInferSpatialEst", normalisation},
      {"void at::native::batch_norm_transform_input_kernel<float, float, float, true, int>(...)", normalisation},
      {"vectorized_layer_norm_kernel", normalisation},
      {"miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1", convolution},
      {"igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1", convolution},
      {"_ZN2ck16tensor_operation6device12_GLOBAL__N_126kernel_grouped_conv_fwd_multiple_abd", convolution},
      {"Im2d2Col_im2col", convolution},
      {"mloPoolingG", pooling},
      {"void at::native::max_pool_forward_nhwc<float, int>(...)", pooling},
      {"Cijk_Ailk_Bljk_SB_MT128x96x16_MI32x32x2x1", matmul},
      {"sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x64", matmul},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 7, false, false>(...)", softmax},
      {"aiter::fmha_fwd_hd128_bf16", attention},
      {"attn_fwd", attention},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<...>>(...)", elementwise},
      {"Op2dTensorLite", elementwise},
      {"convert_fp32_to_bf16", other},
      {"__amd_rocclr_copyBuffer", other},
      {"", other},
  };
  for (const auto& [name, kernel_class] : names) EXPECT_EQ(name_of(class_of(name)), name_of(kernel_class)) << name;
}

TEST(KernelClass, of_our_own_cases) {
  using enum KernelClass;
  EXPECT_EQ(class_of("im2col"), convolution);
  EXPECT_EQ(class_of("batch_norm"), normalisation);
  EXPECT_EQ(class_of("max_pool"), pooling);
  EXPECT_EQ(class_of("gemm"), matmul);
  EXPECT_EQ(class_of("softmax"), softmax);
  EXPECT_EQ(class_of("chain"), elementwise);
}

}  // namespace
}  // namespace weir::amd
