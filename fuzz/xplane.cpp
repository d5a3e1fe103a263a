// XLA's profiles of any origin, with operators or without.
#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::fuzz_importer("xplane", data, size);
}
