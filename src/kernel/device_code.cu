// Every kernel of the catalogue for every element type, as functions that a driver finds by name: weir_<kernel>_<type>.
// The bodies are in the .cuh files; gemm comes from the vendor's library.
#include "kernel/accept.cuh"
#include "kernel/adam.cuh"
#include "kernel/adamw.cuh"
#include "kernel/add.cuh"
#include "kernel/admit.cuh"
#include "kernel/advance.cuh"
#include "kernel/arg_max.cuh"
#include "kernel/attention.cuh"
#include "kernel/augment.cuh"
#include "kernel/cache_write.cuh"
#include "kernel/chain.cuh"
#include "kernel/clip.cuh"
#include "kernel/combine.cuh"
#include "kernel/copy.cuh"
#include "kernel/dispatch.cuh"
#include "kernel/embedding_grad.cuh"
#include "kernel/fill.cuh"
#include "kernel/gather.cuh"
#include "kernel/gelu.cuh"
#include "kernel/gelu_backward.cuh"
#include "kernel/hold.cuh"
#include "kernel/im2col.cuh"
#include "kernel/increase.cuh"
#include "kernel/layer_norm.cuh"
#include "kernel/layer_norm_backward.cuh"
#include "kernel/layer_norm_grad.cuh"
#include "kernel/ragged_gemm.cuh"
#include "kernel/reduce.cuh"
#include "kernel/route.cuh"
#include "kernel/scatter.cuh"
#include "kernel/softmax.cuh"
#include "kernel/softmax_backward.cuh"
#include "kernel/spin.cuh"
#include "kernel/square_sum.cuh"
#include "kernel/stamp.cuh"
#include "kernel/sum_rows.cuh"
#include "kernel/toil.cuh"
#include "kernel/top_k.cuh"
#include "kernel/transpose.cuh"
#include "kernel/weighted_bce.cuh"

// The bound on threads matches body.h's geometries; a second one is how many blocks a multiprocessor must hold.
#define WEIR_KERNEL(kernel, name, type, ...)                                                                        \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__) weir_##kernel##_##name(const weir::KernelArguments a) { \
    weir::device::kernel<type>(a);                                                                                  \
  }
#define WEIR_FLOAT_KERNEL(kernel, ...)                      \
  WEIR_KERNEL(kernel, f32, float, __VA_ARGS__)              \
  WEIR_KERNEL(kernel, f16, weir::device::Half, __VA_ARGS__) \
  WEIR_KERNEL(kernel, bf16, weir::device::Bfloat16, __VA_ARGS__)
#define WEIR_ANY_KERNEL(kernel, threads) \
  WEIR_FLOAT_KERNEL(kernel, threads)     \
  WEIR_KERNEL(kernel, i32, int, threads)

#define WEIR_CHAIN_KERNEL(op, name, type)                                                                      \
  extern "C" __global__ void __launch_bounds__(256) weir_chain_##op##_##name(const weir::ElementArguments a) { \
    weir::device::chain_single<weir::ChainOp::op, type>(a);                                                    \
  }
#define WEIR_LEAN_CHAIN(op)                      \
  WEIR_CHAIN_KERNEL(op, f32, float)              \
  WEIR_CHAIN_KERNEL(op, f16, weir::device::Half) \
  WEIR_CHAIN_KERNEL(op, bf16, weir::device::Bfloat16)

WEIR_FLOAT_KERNEL(chain, 256)
WEIR_LEAN_CHAIN(mul)
WEIR_LEAN_CHAIN(add)
WEIR_LEAN_CHAIN(abs)
WEIR_LEAN_CHAIN(clamp)
WEIR_FLOAT_KERNEL(gelu, 256)
WEIR_FLOAT_KERNEL(softmax, 1024)
WEIR_FLOAT_KERNEL(layer_norm, 1024)
WEIR_FLOAT_KERNEL(reduce, 1024)
WEIR_ANY_KERNEL(gather, 256)
WEIR_ANY_KERNEL(scatter, 256)
WEIR_ANY_KERNEL(copy, 256)
WEIR_ANY_KERNEL(fill, 256)
WEIR_KERNEL(increase, i32, int, 256)
WEIR_FLOAT_KERNEL(dispatch, 256)
WEIR_FLOAT_KERNEL(add, 256)
WEIR_FLOAT_KERNEL(sum_rows, 256)
WEIR_ANY_KERNEL(transpose, 256)
WEIR_FLOAT_KERNEL(softmax_backward, 1024)
WEIR_FLOAT_KERNEL(gelu_backward, 256)
WEIR_FLOAT_KERNEL(layer_norm_backward, 1024)
WEIR_FLOAT_KERNEL(layer_norm_grad, 1024)
WEIR_FLOAT_KERNEL(adam, 256)
WEIR_FLOAT_KERNEL(adamw, 256)
WEIR_FLOAT_KERNEL(square_sum, 256)
WEIR_FLOAT_KERNEL(weighted_bce, 256)
WEIR_FLOAT_KERNEL(embedding_grad, 256)
WEIR_FLOAT_KERNEL(attention, 256, 2)
WEIR_FLOAT_KERNEL(cache_write, 256)
WEIR_FLOAT_KERNEL(arg_max, 1024)
WEIR_FLOAT_KERNEL(top_k, 1024)
WEIR_FLOAT_KERNEL(ragged_gemm, 256, 2)
WEIR_FLOAT_KERNEL(combine, 256)
WEIR_FLOAT_KERNEL(im2col, 256)
WEIR_FLOAT_KERNEL(augment, 256)
WEIR_KERNEL(accept, i32, int, 32)
WEIR_KERNEL(advance, i32, int, 256)
WEIR_KERNEL(admit, i32, int, 256)
WEIR_KERNEL(route, i32, int, 1024)

extern "C" __global__ void __launch_bounds__(256) weir_clip_f32(const weir::KernelArguments a) {
  weir::device::clip(a);
}
extern "C" __global__ void __launch_bounds__(32) weir_spin_f32(const weir::KernelArguments a) { weir::device::spin(a); }
extern "C" __global__ void __launch_bounds__(32) weir_stamp_i32(const weir::KernelArguments a) {
  weir::device::stamp(a);
}
extern "C" __global__ void __launch_bounds__(32) weir_hold_i32(const weir::KernelArguments a) { weir::device::hold(a); }
extern "C" __global__ void __launch_bounds__(256) weir_toil_i32(const weir::KernelArguments a) {
  weir::device::toil(a);
}
