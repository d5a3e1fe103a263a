// Recordings of any origin; the seeds have small tables and a cut chunk with one call of each kind.
#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::fuzz_importer("weir_recording", data, size);
}
