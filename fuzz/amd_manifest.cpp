// Manifests of captures of any origin: whatever the text, it either gives one whose paths stay in the folder, and that
// is written and read again as it is, or throws our own error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "amd/capture/manifest.h"
#include "base/error.h"

namespace {

bool stays(std::string_view path) {
  return !path.empty() && path[0] != '/' && path != ".." && !path.starts_with("../") && !path.ends_with("/..") &&
         path.find("/../") == std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const weir::amd::CaptureManifest manifest = weir::amd::parse_manifest(text, "fuzz");
    for (const weir::amd::CapturePart& part : manifest.parts)
      for (const std::string& file : part.files)
        if (!stays(file)) __builtin_trap();
    for (const weir::amd::CaptureSnapshot& snapshot : manifest.snapshots)
      if (!stays(snapshot.folder)) __builtin_trap();
    const std::string written = weir::to_text(weir::amd::to_json(manifest));
    if (weir::to_text(weir::amd::to_json(weir::amd::parse_manifest(written, "again"))) != written) __builtin_trap();
  } catch (const weir::Error& error) {
    // The one way in which a file may be refused, and always as the user's mistake.
    if (error.fault != weir::Fault::input) __builtin_trap();
  }
  return 0;
}
