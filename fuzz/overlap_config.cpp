// Configs of `weir overlap` of any origin, AORTA's included: whatever the text, it either gives points or throws our
// own error.
#include "lab/overlap/overlap_config.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 8192) return 0;
  try {
    const weir::OverlapConfig config = weir::parse_overlap_config(text, "fuzz", 4);
    for (const weir::OverlapPoint& point : weir::overlap_points(config)) {
      if (point.config.request().params.empty()) __builtin_trap();
      point.config.network();
    }
    config.idle_keys();
  } catch (const weir::Error& error) {
    // The one way in which a file may be refused, and always as the user's mistake.
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
