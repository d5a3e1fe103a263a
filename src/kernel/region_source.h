// The source of a region's kernel for each kind of compiler. Compiles nothing.
#pragma once

#include <string>

#include "kernel/region.h"

namespace weir {

enum class RegionLanguage : std::uint8_t { cpp, cuda, opencl };

// Depends on the operations alone, so that regions of all sizes share their code. Made of our own text and numbers
// only.
// - cpp: a RegionFunction, for all types, because the caller converts what is not f32.
// - cuda: for CUDA and HIP; includes weir/device.h, expects WEIR_PRECISION, and takes KernelArguments.
// - opencl: follows the prelude (kernel/prelude.cl).
std::string region_source(const KernelShape& shape, RegionLanguage language);

// The name of its function.
inline constexpr const char* kRegionEntry = "weir_region";

}  // namespace weir
