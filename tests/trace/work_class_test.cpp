// Kernels' names as libraries write them, and what kind of work they are.
#include "trace/work_class.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

struct Case {
  WorkClass work;
  const char* name;
};
constexpr Case kCases[] = {
    {WorkClass::matrix, "nvjet_sm90_tst_128x64_64x8_1x2_h_bz_NNT"},
    {WorkClass::matrix, "ampere_sgemm_128x128_tn"},
    {WorkClass::matrix, "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256_MI16x16x1_SN_LDSB1"},
    {WorkClass::matrix, "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x4_nn_align1>(Params)"},
    {WorkClass::matrix, "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float>(Params)"},
    {WorkClass::matrix, "void epilogue::impl::globalKernel<float, true>(int, long, float*, cublasLtEpilogue_t)"},
    {WorkClass::matrix, "_finalize_matmul_scatter_bf16"},
    {WorkClass::matrix, "triton_tem_fused_addmm_3"},
    {WorkClass::attention, "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>(Params)"},
    {WorkClass::attention, "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_kernel0_0"},
    {WorkClass::attention, "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, 128>(float const*)"},
    {WorkClass::attention, "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<Traits>>>(Params)"},
    {WorkClass::attention, "triton_tem_fused_flex_attention_0"},
    {WorkClass::attention, "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1>>(Params)"},
    {WorkClass::attention, "_fwd_kernel_splitK"},
    {WorkClass::convolution,
     "void ck::kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffle<ck::GridwiseGemmMultipleABD_xdl_cshuffle<int>>(int)"},
    {WorkClass::convolution, "miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f2x3_stride1"},
    {WorkClass::convolution, "igemm_wrw_gtcx3_nhwc_fp16_bx0_ex0_bt256x256x32"},
    {WorkClass::convolution, "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32>(Params)"},
    {WorkClass::normalisation,
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)"},
    {WorkClass::normalisation, "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16EEvPT0_"},
    {WorkClass::normalisation, "MIOpenBatchNormFwdTrainSpatial"},
    {WorkClass::softmax, "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<c10::BFloat16>(float*)"},
    {WorkClass::softmax, "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>(int)"},
    {WorkClass::embedding,
     "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float>"},
    {WorkClass::embedding, "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<int>>(int)"},
    {WorkClass::embedding, "void fbgemm_gpu::permute_indices_weights_kernel<false, int>(int)"},
    {WorkClass::element_wise,
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"},
    {WorkClass::element_wise, "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)"},
    {WorkClass::element_wise, "triton_poi_fused__to_copy_add_1"},
    {WorkClass::element_wise, "_Z11DaxpyKernelidPdS_"},
    {WorkClass::reduction, "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps<float>>>(int)"},
    {WorkClass::element_wise, "triton_poi_fused__scaled_dot_product_efficient_attention_1"},
    {WorkClass::element_wise, "triton_poi_fused_bmm_0"},
    {WorkClass::reduction, "triton_red_fused_sum_2"},
    {WorkClass::reduction, "triton_red_fused_native_layer_norm_3"},
    {WorkClass::reduction, "_chunk_scan_fwd_kernel"},
    {WorkClass::reduction,
     "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16, 1>>(SSMParamsBase)"},
    {WorkClass::matrix, "_bmm_chunk_fwd_kernel"},
    {WorkClass::embedding, "void moe_permute_topK_kernel<__nv_bfloat16, __nv_bfloat16, 128, false>(void const*)"},
    {WorkClass::element_wise, "loop_multiply_fusion_3"},
    {WorkClass::element_wise, "loop_transpose_fusion"},
    {WorkClass::reduction, "input_reduce_fusion_1"},
    {WorkClass::pooling, "void at::native::(anonymous namespace)::max_pool_forward_nchw<c10::BFloat16>(int)"},
    {WorkClass::sorting, "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int>>(int*)"},
    {WorkClass::sorting, "void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>(int)"},
    {WorkClass::sorting, "void vllm::moe::topkGatingSoftmax<4, 8, 4, 16>(float const*)"},
    {WorkClass::sorting, "void rocprim::detail::lookback_scan_kernel<true>(int)"},
    {WorkClass::rearranging,
     "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)"},
    {WorkClass::rearranging,
     "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(int)"},
    {WorkClass::rearranging, "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>(int)"},
    {WorkClass::rearranging, "batched_transpose_16x32_half"},
    {WorkClass::random, "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16, float>(int)"},
    {WorkClass::optimizer, "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)"},
    {WorkClass::unrecognised, "void fbgemm_gpu::lxu_cache_lookup_kernel<long>(fbgemm_gpu::Accessor<long>)"},
    {WorkClass::unrecognised, "ampere_sgemm_128x128_tn and 12 before it"},
    {WorkClass::unrecognised, "ampere_sgemm_128x128_tn and 12 before it, not known to have ended"},
    {WorkClass::matrix, "ampere_sgemm_128x128_tn, not known to have ended"},
    {WorkClass::unrecognised, "main_loop(int*)"},
    {WorkClass::unrecognised, ""},
};

TEST(WorkClass, of_kernels_by_their_names) {
  for (const Case& each : kCases)
    EXPECT_STREQ(to_string(work_class_of(SpanKind::kernel, each.name)), to_string(each.work)) << each.name;
}

TEST(WorkClass, of_other_commands_by_their_kind) {
  EXPECT_EQ(work_class_of(SpanKind::collective, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), WorkClass::communication);
  EXPECT_EQ(work_class_of(SpanKind::copy, "Memcpy HtoD"), WorkClass::copy);
  EXPECT_EQ(work_class_of(SpanKind::memset, "Memset (Device)"), WorkClass::memset);
}

TEST(WorkClass, any_bytes_are_a_name) {
  for (const std::string_view name : {"<<<<", ")))(((", "->->", "\xff\xfe", "a<b(c>d)e"})
    EXPECT_EQ(work_class_of(SpanKind::kernel, name), WorkClass::unrecognised) << name;
}

TEST(WorkClass, every_class_has_a_name_of_its_own) {
  for (std::size_t i = 0; i < kWorkClasses; ++i)
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_STRNE(to_string(static_cast<WorkClass>(i)), to_string(static_cast<WorkClass>(j)));
}

}  // namespace
}  // namespace weir
