// Makes text from packages safe for messages and files. Knows no package.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "base/plain_text.h"

namespace weir::package {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
// A letter or an underscore, followed by letters, underscores and digits.
inline bool is_identifier(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

// Replaces control characters with '?' and cuts the text at `most` bytes, with "..." in place of the rest.
inline std::string printable(std::string_view text, std::size_t most) {
  const std::string result = without_controls(whole_characters(text, most), '?');
  return text.size() > most ? result + "..." : result;
}
// The same for a C string, which may be null.
inline std::string printable(const char* text, std::size_t most) {
  return text == nullptr ? std::string() : printable(std::string_view(text, ::strnlen(text, most + 1)), most);
}

// A word that can be used in keys, tables and messages.
inline bool is_name(const char* text) {
  if (text == nullptr) return false;
  const std::size_t length = ::strnlen(text, 101);
  if (length == 0 || length > 100) return false;
  const std::string_view name(text, length);
  return name.find(' ') == std::string_view::npos && without_controls(name, ' ') == name;
}

}  // namespace weir::package
