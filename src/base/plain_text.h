// Text from files, programs and users: made safe for a terminal, which obeys escape sequences; trimmed, and parsed as
// numbers. Knows no file.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

// Replaces each control character by `instead`: those below a blank, DEL, and C1 (U+0080 to U+009F), whose U+009B
// begins an escape sequence just as ESC [ does, both as UTF-8 and as stray bytes. Characters in `kept` stay.
inline std::string without_controls(std::string_view text, char instead, std::string_view kept = {}) {
  std::string plain;
  plain.reserve(text.size());
  int following = 0;  // remaining bytes of the current character
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool is_second_set = byte == 0xc2 && next >= 0x80 && next < 0xa0;
    if (is_second_set) ++i;
    const bool is_following = following > 0 && (byte & 0xc0U) == 0x80;
    following = is_following ? following - 1 : is_second_set || byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    const bool is_control =
        is_second_set || byte < 0x20 || byte == 0x7f || (!is_following && byte >= 0x80 && byte < 0xa0);
    plain += is_control && kept.find(text[i]) == std::string_view::npos ? instead : text[i];
  }
  return plain;
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
// A letter of a user-defined word: an ASCII letter or '_'.
constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Without blanks at either end.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") noexcept {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// The whole text as a number; nothing if it is anything else (blanks, suffixes, overflow).
template <class Number>
std::optional<Number> parse_as(std::string_view text) noexcept {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// A word as a shell reads it back: 'it'\''s'. $'a\x1b': bash, not the terminal, interprets control characters.
inline std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
      "0123456789_-+./:=,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; };
  bool has_control = false;
  for (const char c : word) has_control = has_control || is_control(c);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = has_control ? "$'" : "'";
  for (const char c : word) {
    if (has_control && (is_control(c) || c == '\'' || c == '\\')) {
      const auto byte = static_cast<unsigned char>(c);
      text += "\\x";
      text += kDigits[byte / 16U];
      text += kDigits[byte % 16U];
    } else if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

// At most the first `most` bytes, never ending within a character.
inline std::string_view whole_characters(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && most - end < 3 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  return text.substr(0, end);
}

// Length of the UTF-8 character that begins at `at`; 0 if it is invalid (overlong, surrogate, truncated).
inline std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) >= 0xa0) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

// Replaces each invalid byte by U+FFFD: names and paths may contain any bytes, but formats require UTF-8.
inline std::string as_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_bytes(text, i);
    clean += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return clean;
}

}  // namespace weir
