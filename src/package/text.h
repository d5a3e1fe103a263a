// Text that comes from packages, made fit for messages and files. Knows no package.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

namespace weir::package {

// Control characters become '?', and what is beyond `most` bytes is cut, with "..." in its place.
inline std::string printable(std::string_view text, std::size_t most) {
  const bool is_long = text.size() > most;
  std::string result(text.substr(0, most));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (is_long) result += "...";
  return result;
}
// Of a C string, which may be null.
inline std::string printable(const char* text, std::size_t most) {
  return text == nullptr ? std::string() : printable(std::string_view(text, ::strnlen(text, most + 1)), most);
}

// A word that can stand in keys, tables and messages.
inline bool is_name(const char* text) {
  if (text == nullptr) return false;
  const std::size_t length = ::strnlen(text, 101);
  if (length == 0 || length > 100) return false;
  for (std::size_t i = 0; i < length; ++i)
    if (static_cast<unsigned char>(text[i]) <= 0x20 || text[i] == 0x7f) return false;
  return true;
}

}  // namespace weir::package
