// Perfetto's protobuf traces of any origin.
#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::fuzz_importer("perfetto", data, size);
}
