// Device profiles of any origin: whatever the text, it either gives a profile that reads back as itself or throws our
// own error.
#include "device/sim/profile.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace weir::sim {

// The program's own are no input.
std::span<const EmbeddedProfile> embedded_profiles() { return {}; }

}  // namespace weir::sim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const weir::sim::SimProfile profile = weir::sim::load_profile(text, "fuzz");
    const std::string written = weir::sim::to_yaml(profile);
    if (weir::sim::to_yaml(weir::sim::load_profile(written, "again")) != written) __builtin_trap();
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  // key=value, as --sim gives it.
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return 0;
  try {
    weir::sim::SimProfile profile;
    weir::sim::apply(profile, std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  } catch (const weir::Error& error) {
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
