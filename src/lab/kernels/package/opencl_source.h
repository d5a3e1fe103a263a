// A package's kernel.cl as passed to the driver: OpenCL has no include folders, so the headers are put before it. Knows
// text; no driver.
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
