// One line of the runtime's log: its head, and the values in its message. Knows the formats of ROCm 5 to 7; stateless.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace weir::amd {

struct LineHead {
  int level = 0;  // 0 .. 9
  std::optional<std::uint64_t> time_us;
  std::optional<int> pid;
  std::uint64_t tid = 0;
  // Positions within the line, from which callers can guess those of the next line.
  std::uint32_t digits_at = 0;  // of the time
  std::uint32_t digits = 0;
  std::uint32_t us_at = 0;       // of "us: "
  std::uint32_t message_at = 0;  // after the process and thread, before color codes
};

// Parses the head of a record at the beginning of `line`; nothing if there is none.
std::optional<LineHead> parse_head(std::string_view line);

// If `text` begins with a process and thread, removes them and stores them in `head`.
void take_process(std::string_view& text, LineHead& head);

// Finds the start of a record within a line that begins with something else (program output without a newline); npos if
// there is none.
std::size_t find_glued(std::string_view line);

// The message without color codes, blanks and a carriage return at either end.
std::string_view trimmed(std::string_view message);

// Removes `word` from the beginning of `text`; false if `text` does not begin with it.
inline bool take_word(std::string_view& text, std::string_view word) {
  if (text.size() < word.size() || std::memcmp(text.data(), word.data(), word.size()) != 0) return false;
  text.remove_prefix(word.size());
  return true;
}
// Removes everything up to the end of the next `word`; false if there is none.
inline bool seek_word(std::string_view& text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at + word.size());
  return true;
}
// "0x7f8acd200000", "7f8acd200000", "0x7fb,bb5,821,380" (a locale's grouping); advances `text` past it.
std::optional<std::uint64_t> take_hex(std::string_view& text);
std::optional<std::uint64_t> take_decimal(std::string_view& text);

// The value after `key` ("HWq="); nothing if it is missing or malformed.
std::optional<std::uint64_t> hex_after(std::string_view text, std::string_view key);
std::optional<std::uint64_t> decimal_after(std::string_view text, std::string_view key);
// Removes and returns a number at the end of `text`.
std::optional<std::uint64_t> take_last_decimal(std::string_view& text);
// "[1024, 1, 1]".
std::optional<std::array<std::uint32_t, 3>> take_triple(std::string_view& text);

}  // namespace weir::amd
