// Where the files of a CUDA toolkit lie on this machine. Knows folders; opens nothing.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace weir {

// Names of a library as the loader takes them: its own search first, then where toolkits are usually installed.
// `names` is in order of preference: libnvrtc.so.13, libnvrtc.so.12.
std::vector<std::string> toolkit_places(std::span<const std::string> names);

// The headers of the first toolkit that has some; empty where there is none.
std::filesystem::path toolkit_headers();

}  // namespace weir
