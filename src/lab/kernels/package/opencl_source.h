// A package's kernel.cl as a driver gets it: OpenCL has no folders of ours to include from, so the headers come before
// it. Knows text; no driver.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/kernels/package/build.h"

namespace weir::package {

// weir/kernel.h, weir/device.h and `source`, without the lines that include one of them. Lines keep their numbers,
// under the name `name`.
std::string opencl_text(std::span<const EmbeddedHeader> headers, std::string_view name, std::string_view source);

}  // namespace weir::package
