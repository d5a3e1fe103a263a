#include "trace/import/csv_reader.h"

#include <algorithm>

namespace weir {
namespace {

constexpr std::size_t kLongestRow = std::size_t{1} << 20;
constexpr int kMaxResumed = 16;
constexpr std::size_t kChunk = std::size_t{64} << 10;

}  // namespace

std::string_view CsvReader::operator[](std::size_t field) const noexcept {
  if (field >= fields_.size()) return {};
  return std::string_view(text_).substr(fields_[field].begin, fields_[field].end - fields_[field].begin);
}

int CsvReader::look() {
  if (at_ == ahead_.size()) {
    ahead_.resize(kChunk);
    ahead_.resize(bytes_.read(ahead_.data(), kChunk));
    at_ = 0;
    if (ahead_.empty()) return -1;
  }
  return static_cast<unsigned char>(ahead_[at_]);
}

int CsvReader::take() {
  const int c = look();
  if (c < 0) return c;
  ++at_;
  raw_ += static_cast<char>(c);
  if (c == '\n') ++next_line_;
  return c;
}

// Copies characters up to one of `ends` into the field; at most what is in the buffer.
void CsvReader::take_plain(const char* ends) {
  const std::size_t stop = std::min(ahead_.find_first_of(ends, at_), ahead_.size());
  text_.append(ahead_, at_, stop - at_);
  raw_.append(ahead_, at_, stop - at_);
  at_ = stop;
}

// After an opening quote, up to the closing one.
CsvReader::Row CsvReader::take_quoted() {
  for (;;) {
    take_plain("\"\n");
    const int c = take();
    if (c < 0) return Row::unended;
    if (raw_.size() > kLongestRow) return Row::too_long;
    if (c != '"') {
      text_ += static_cast<char>(c);
      continue;
    }
    // "a ""b"" c" doubles its quotes. "a "b" c" should but does not, so only a quote at the end of a field closes it.
    const int after = look();
    if (after == '"') {
      take();
      text_ += '"';
    } else if (after == ',' || after == '\r' || after == '\n' || after < 0) {
      return Row::whole;
    } else {
      text_ += '"';
    }
  }
}

CsvReader::Row CsvReader::take_fields() {
  text_.clear();
  raw_.clear();
  fields_.clear();
  line_ = next_line_;
  fields_.push_back({0, 0});
  for (;;) {
    take_plain(",\"\r\n");
    const int c = take();
    if (raw_.size() > kLongestRow) return Row::too_long;
    if (c < 0 || c == '\n') {
      fields_.back().end = text_.size();
      return Row::whole;
    }
    if (c == ',') {
      fields_.back().end = text_.size();
      fields_.push_back({text_.size(), 0});
    } else if (c == '"' && text_.size() == fields_.back().begin) {
      if (const Row row = take_quoted(); row != Row::whole) return row;
    } else if (c != '\r' || look() != '\n') {
      text_ += static_cast<char>(c);
    }
  }
}

void CsvReader::resume_after_first_line() {
  const std::size_t end = raw_.find('\n');
  // Reading again costs up to 1 MiB per line, so a file may cause that only a limited number of times.
  if (end != std::string::npos && ++resumed_ <= kMaxResumed) {
    // The text after the first line is read again, because it probably consists of rows.
    ahead_ = raw_.substr(end + 1) + ahead_.substr(at_);
    at_ = 0;
    next_line_ = line_ + 1;
    return;
  }
  for (int c = take(); c >= 0 && c != '\n'; c = take()) raw_.clear();
}

CsvReader::Row CsvReader::next() {
  if (is_start_) {
    is_start_ = false;
    if (bytes_.peek(3) == "\xEF\xBB\xBF") {
      char mark[3];
      bytes_.read(mark, sizeof(mark));
    }
  }
  for (;;) {
    if (look() < 0) return Row::none;
    const Row row = take_fields();
    if (row != Row::whole) {
      fields_.clear();
      if (row == Row::too_long) resume_after_first_line();
      return row;
    }
    if (fields_.size() > 1 || fields_[0].end > 0) return row;
  }
}

}  // namespace weir
