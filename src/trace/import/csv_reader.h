// Reads CSV one row at a time, from files of any size: quotes, doubled or bare, commas and line ends within them,
// either kind of line end. Knows no columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/import/byte_source.h"

namespace weir {

class CsvReader {
 public:
  explicit CsvReader(ByteSource& bytes) : bytes_(bytes) {}

  enum class Row { whole, too_long, unended, none };
  // Advances to the next row that is not empty. `too_long` rows (over 1 MiB: an unclosed quote) are skipped up to the
  // end of their first line; `unended` is a last row that ends within quotes.
  Row next();
  // Fields of the row; valid until next().
  std::size_t size() const noexcept { return fields_.size(); }
  std::string_view operator[](std::size_t field) const noexcept;
  // The line on which the row begins, from 1.
  std::uint64_t line() const noexcept { return line_; }

 private:
  struct Field {
    std::size_t begin = 0, end = 0;  // in text_
  };
  int take();
  int look();
  void take_plain(const char* ends);
  Row take_fields();
  Row take_quoted();
  void resume_after_first_line();

  ByteSource& bytes_;
  std::string ahead_;  // read but not used yet
  std::size_t at_ = 0;
  std::string text_;  // fields without their quotes
  std::string raw_;   // the row as written in the file
  std::vector<Field> fields_;
  std::uint64_t line_ = 0, next_line_ = 1;
  int resumed_ = 0;
  bool is_start_ = true;
};

}  // namespace weir
