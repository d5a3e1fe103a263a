// The list of kernels. To add one, add a file next to this one and its name below.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "kernel/kernel.h"

namespace weir {
namespace catalogue {

Kernel accept(), adam(), adamw(), add(), admit(), advance(), arg_max(), attention(), augment(), cache_write(), chain(),
    clip(), combine(), copy(), dispatch(), embedding_grad(), fill(), gather(), gelu(), gelu_backward(), gemm(),
    graph_break(), hold(), im2col(), increase(), layer_norm(), layer_norm_backward(), layer_norm_grad(), ragged_gemm(),
    reduce(), route(), scatter(), softmax(), softmax_backward(), spin(), square_sum(), stamp(), sum_rows(), toil(),
    top_k(), transpose(), weighted_bce();

}  // namespace catalogue

std::span<const Kernel> kernels() {
  static const Kernel kKernels[] = {
      catalogue::gemm(),                 //
      catalogue::chain(),                //
      catalogue::softmax(),              //
      catalogue::layer_norm(),           //
      catalogue::gelu(),                 //
      catalogue::reduce(),               //
      catalogue::gather(),               //
      catalogue::scatter(),              //
      catalogue::copy(),                 //
      catalogue::fill(),                 //
      catalogue::spin(),                 //
      catalogue::increase(),             //
      catalogue::dispatch(),             //
      catalogue::add(),                  //
      catalogue::sum_rows(),             //
      catalogue::transpose(),            //
      catalogue::softmax_backward(),     //
      catalogue::gelu_backward(),        //
      catalogue::layer_norm_backward(),  //
      catalogue::layer_norm_grad(),      //
      catalogue::adam(),                 //
      catalogue::graph_break(),          //
      catalogue::attention(),            //
      catalogue::cache_write(),          //
      catalogue::arg_max(),              //
      catalogue::top_k(),                //
      catalogue::accept(),               //
      catalogue::advance(),              //
      catalogue::admit(),                //
      catalogue::route(),                //
      catalogue::ragged_gemm(),          //
      catalogue::combine(),              //
      catalogue::im2col(),               //
      catalogue::augment(),              //
      catalogue::stamp(),                //
      catalogue::hold(),                 //
      catalogue::adamw(),                //
      catalogue::clip(),                 //
      catalogue::square_sum(),           //
      catalogue::weighted_bce(),         //
      catalogue::embedding_grad(),       //
      catalogue::toil(),                 //
  };
  return kKernels;
}

const Kernel& kernel(KernelId id) { return kernels()[static_cast<std::size_t>(id)]; }

KernelId kernel_named(std::string_view name) {
  const std::span<const Kernel> all = kernels();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return static_cast<KernelId>(i);
  std::vector<std::string> names;
  for (const Kernel& each : all) names.emplace_back(each.name);
  reject(fmt::format("there is no kernel '{}'", name), suggestion(name, names));
}

}  // namespace weir
