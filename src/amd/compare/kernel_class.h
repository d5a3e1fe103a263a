// What a kernel is for, by its name: names of MIOpen, Tensile, Composable Kernel, PyTorch, cuDNN and Weir's own. A
// guess by words, which says "other" where no word is known. Knows names only.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::amd {

enum class KernelClass : std::uint8_t {
  convolution,
  pooling,
  normalisation,
  matmul,
  softmax,
  attention,
  elementwise,
  other,
};
inline constexpr std::size_t kKernelClasses = 8;

std::string_view name_of(KernelClass kernel_class);
KernelClass class_of(std::string_view kernel);

}  // namespace weir::amd
