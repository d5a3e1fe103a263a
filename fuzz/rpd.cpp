// rocmProfileData's and rocprofv3's databases of any origin; seeds as those of nsys.
#include "import_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return weir::fuzz_importer("rpd", data, size);
}
