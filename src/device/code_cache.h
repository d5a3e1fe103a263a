// Compiled code of regions, kept in the user's cache from run to run. Knows files; no compiler and no device.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir {

// What was kept under a key (ContentHash::text()). Nothing if there is none, if it is damaged (its content does not
// match the hash that it was written with), or if the folder is open to others.
std::optional<std::string> kept_code(const std::string& key);
// A cache that cannot be written costs time and nothing else.
void keep_code(const std::string& key, std::string_view code);

}  // namespace weir
