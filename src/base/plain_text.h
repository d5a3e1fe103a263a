// Text from files, programs and users: made safe for a terminal, which obeys escape sequences; trimmed, and parsed as
// numbers. Knows no file.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir {

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

// The code point of one whole character.
constexpr char32_t code_point(std::string_view character) noexcept {
  const auto lead = static_cast<unsigned char>(character[0]);
  char32_t c = character.size() == 1 ? lead : lead & (0xffU >> (character.size() + 1));
  for (const char following : character.substr(1)) c = c << 6U | (static_cast<unsigned char>(following) & 0x3fU);
  return c;
}

// Whether a terminal obeys this character instead of showing it, or shows nothing: control characters (C1 too: U+009B
// begins an escape sequence just as ESC [ does), line separators, marks that change the direction of the text around
// them (U+202E makes "gpj.exe" of "exe.jpg"), invisible ones, and code points that are no characters.
constexpr bool is_control(char32_t c) noexcept {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},   {0x115f, 0x1160},
      {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
      {0xfdd0, 0xfdef}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe0fff}};
  if (c >= ' ' && c < 0x7f) return false;
  for (const auto& [first, last] : kRanges)
    if (c >= first && c <= last) return true;
  return (c & 0xfffeU) == 0xfffe;
}

// Replaces each control character by `instead`, and each byte that is not UTF-8. Characters in `kept` stay.
inline std::string without_controls(std::string_view text, char instead, std::string_view kept = {}) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_bytes(text, i);
    const std::string_view character = text.substr(i, length);
    if (length == 0 || (is_control(code_point(character)) && kept.find(character) == std::string_view::npos))
      plain += instead;
    else
      plain += character;
    i += length == 0 ? 1 : length;
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
  const bool has_control = without_controls(word, '?') != word;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = has_control ? "$'" : "'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (has_control && (byte < ' ' || byte >= 127 || c == '\'' || c == '\\')) {
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
