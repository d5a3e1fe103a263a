// The list of kernels. A new one is a file beside this one and its name below.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "kernel/kernel.h"

namespace weir {
namespace catalogue {

Kernel chain(), copy(), fill(), gather(), gelu(), gemm(), layer_norm(), reduce(), scatter(), softmax(), spin();
Kernel accept(), admit(), advance(), arg_max(), attention(), augment(), cache_write(), combine(), im2col();
Kernel ragged_gemm(), route(), top_k();

}  // namespace catalogue

std::span<const Kernel> kernels() {
  static const Kernel kKernels[] = {
      catalogue::gemm(),         //
      catalogue::chain(),        //
      catalogue::softmax(),      //
      catalogue::layer_norm(),   //
      catalogue::gelu(),         //
      catalogue::reduce(),       //
      catalogue::gather(),       //
      catalogue::scatter(),      //
      catalogue::copy(),         //
      catalogue::fill(),         //
      catalogue::spin(),         //
      catalogue::attention(),    //
      catalogue::cache_write(),  //
      catalogue::arg_max(),      //
      catalogue::top_k(),        //
      catalogue::accept(),       //
      catalogue::advance(),      //
      catalogue::admit(),        //
      catalogue::route(),        //
      catalogue::ragged_gemm(),  //
      catalogue::combine(),      //
      catalogue::im2col(),       //
      catalogue::augment(),      //
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
