// Text printed by the kernel: its lines, the numbers in them, and counts of lines that were not understood. Knows no
// format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::kfd {

// Unread lines of one kind.
struct UnreadLines {
  std::string reason;
  std::size_t count = 0;
  std::size_t first_line = 0;  // from 1
};

// Counts by reason. Reasons are fixed texts of the parsers, never words from the file, so there are few.
class UnreadCounts {
 public:
  void add(std::string_view reason, std::size_t line);
  const std::vector<UnreadLines>& all() const noexcept { return all_; }

 private:
  std::vector<UnreadLines> all_;
};

// Iterates over lines; a carriage return at the end is not part of a line.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line);
  std::size_t number() const noexcept { return number_; }  // of the last line from `next`

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

// Takes tokens off the front of a line. Each call returns whether its token was there, and takes nothing otherwise.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}
  bool take(std::string_view word) noexcept;
  bool take(int& decimal) noexcept;                               // 0 .. INT_MAX
  bool take(std::uint32_t& hex, std::size_t least = 1) noexcept;  // `least` to 8 digits, no 0x
  // Takes several in order, up to the first that is missing.
  template <class First, class Second, class... Rest>
  bool take_all(First&& first, Second&& second, Rest&&... rest) noexcept {
    return take(first) && take(second) && (take(rest) && ...);
  }
  bool is_done() const noexcept { return rest_.empty(); }
  std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
};

// A row of a hex dump: an address or offset, then 1 to 8 words.
struct HexRow {
  std::uint32_t at = 0;
  std::uint32_t words[8] = {};
  int count = 0;
};
// "    0000c914: 006e3000 00000000", with `indent` blanks in front.
bool parse_hex_row(std::string_view line, std::size_t indent, HexRow& row) noexcept;

// Rejects text that is empty or contains bytes that no such file has; `name` is the file's name.
void check_is_text(std::string_view text, const std::string& name);

// The result of a read, or errno.
struct ReadText {
  std::optional<std::string> text;
  int error = 0;  // EFBIG if the file is larger than `limit`
};
ReadText read_text(const std::filesystem::path& path, std::size_t limit_bytes = std::size_t{256} << 20);

}  // namespace weir::kfd
