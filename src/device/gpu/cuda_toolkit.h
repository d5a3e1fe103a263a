// Finds the files of a CUDA toolkit on this machine. Knows folders; opens nothing.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace weir {

// Names of a library for the loader: its own search first, then the usual places of toolkits. `names` is in order of
// preference: libnvrtc.so.13, libnvrtc.so.12.
std::vector<std::string> toolkit_places(std::span<const std::string> names);

// The headers of the first toolkit that has any; empty if there is none.
std::filesystem::path toolkit_headers();

}  // namespace weir
