// The OpenCL C text of kernels (src/kernel/*.cl), carried inside the program. Compiles nothing.
#pragma once

#include <span>
#include <string_view>

namespace weir {

struct EmbeddedSource {
  std::string_view name;  // of the file, without .cl
  std::string_view text;
};

// Sorted by name; written by cmake/opencl_code.cmake.
std::span<const EmbeddedSource> embedded_opencl_sources();

// A program is the text of "prelude" followed by that of a kernel. Empty where there is none of that name.
std::string_view opencl_source(std::string_view name);

}  // namespace weir
