// rocprofv3's JSON of any origin.
#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::fuzz_importer("rocprof_json", data, size);
}
