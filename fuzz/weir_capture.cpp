// Captures of any origin; the seed has one block of each type.
#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::fuzz_importer("weir_capture", data, size);
}
