#include "kernel/opencl_source.h"

namespace weir {

std::string_view opencl_source(std::string_view name) {
  for (const EmbeddedSource& source : embedded_opencl_sources())
    if (source.name == name) return source.text;
  return {};
}

}  // namespace weir
