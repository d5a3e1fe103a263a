// One line of the runtime's log: its head, and the values in its message. Knows how ROCm 5 to 7 print; keeps nothing.
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
  // Places within the line, for those who guess the next line's from them.
  std::uint32_t digits_at = 0;  // of the time
  std::uint32_t digits = 0;
  std::uint32_t us_at = 0;       // of "us: "
  std::uint32_t message_at = 0;  // behind the process and thread, before colours
};

// The head of a record that begins `line`; nothing where none does.
std::optional<LineHead> parse_head(std::string_view line);

// Takes the process and thread that `text` begins with, if it does, into `head`.
void take_process(std::string_view& text, LineHead& head);

// Where a record begins within a line that begins with something else (a program's output without an end of line);
// npos where there is none.
std::size_t find_glued(std::string_view line);

// The message without colours, blanks and a carriage return at its ends.
std::string_view trimmed(std::string_view message);

// Whether `text` begins with `word`, which is then taken away.
inline bool take_word(std::string_view& text, std::string_view word) {
  if (text.size() < word.size() || std::memcmp(text.data(), word.data(), word.size()) != 0) return false;
  text.remove_prefix(word.size());
  return true;
}
// Takes `text` away up to the end of the next `word`; false where there is none.
inline bool seek_word(std::string_view& text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at + word.size());
  return true;
}
// "0x7f8acd200000", "7f8acd200000", "0x7fb,bb5,821,380" (a locale's grouping); advances `text` past it.
std::optional<std::uint64_t> take_hex(std::string_view& text);
std::optional<std::uint64_t> take_decimal(std::string_view& text);

// The value behind `key` ("HWq="); nothing where it is missing or broken.
std::optional<std::uint64_t> hex_after(std::string_view text, std::string_view key);
std::optional<std::uint64_t> decimal_after(std::string_view text, std::string_view key);
// A number at the end of `text`, which is then taken away.
std::optional<std::uint64_t> take_last_decimal(std::string_view& text);
// "[1024, 1, 1]".
std::optional<std::array<std::uint32_t, 3>> take_triple(std::string_view& text);

}  // namespace weir::amd
