// Result files of any origin: whatever the bytes, loading either gives points or throws our own error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/upgrade.h"
#include "run/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    weir::Json document = weir::parse_json(text, "fuzz");
    weir::upgrade(document);
    weir::parse_results(document, "fuzz");
  } catch (const weir::Error&) {
    // The one way in which a file may be refused.
  }
  return 0;
}
