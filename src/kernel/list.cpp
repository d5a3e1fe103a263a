// The list of kernels. To add one, add a file next to this one and its name below.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "kernel/kernel.h"

#define WEIR_KERNELS                                                                                                   \
  gemm(), chain(), softmax(), layer_norm(), gelu(), reduce(), gather(), scatter(), copy(), fill(), spin(), increase(), \
      dispatch(), add(), sum_rows(), transpose(), softmax_backward(), gelu_backward(), layer_norm_backward(),          \
      layer_norm_grad(), adam(), graph_break(), attention(), cache_write(), arg_max(), top_k(), accept(), advance(),   \
      admit(), route(), ragged_gemm(), combine(), im2col(), augment(), stamp(), hold(), adamw(), clip(), square_sum(), \
      weighted_bce(), embedding_grad(), toil(), batch_norm(), max_pool(), dropout(), region()

namespace weir {
namespace catalogue {
Kernel WEIR_KERNELS;
}

std::span<const Kernel> kernels() {
  using namespace catalogue;
  static const Kernel kKernels[] = {WEIR_KERNELS};
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
