// Exports of Nsight Systems of any origin; the seeds are databases with pages of 512 bytes, so that mutations hit them.
#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::fuzz_importer("nsys", data, size);
}
