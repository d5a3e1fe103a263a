// Shared parts of the parsers for KFD's debugfs files: lines, words of hex rows, and counts of unread lines. Knows no
// particular file.
#pragma once

#include "amd/kfd/debugfs.h"

namespace weir::kfd {

// A derived parser gets line(text) for each line and finish() at the end.
template <class File>
struct DebugfsParser {
  explicit DebugfsParser(File& file) : file_(file) {}
  void unread(std::string_view reason) { unread_.add(reason, number_); }

  File& file_;
  UnreadCounts unread_;
  std::size_t number_ = 0;  // line number
  std::vector<std::uint32_t> words_;
  bool is_broken_ = false;  // the rows are not contiguous
};

template <class Parser, class File>
File parse_file(File file, std::string_view text, const std::string& name) {
  file.name = name;
  file.bytes = text.size();
  Parser parser(file);
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    parser.number_ = lines.number();
    parser.line(line);
  }
  file.lines = lines.number();
  parser.finish();
  file.unread = parser.unread_.all();
  return file;
}

// Whether `is_own` accepts one of the first lines.
template <class IsOwn>
bool looks_like(std::string_view text, IsOwn&& is_own) {
  Lines lines(text);
  for (std::string_view line; lines.number() < 1000 && lines.next(line);)
    if (is_own(line)) return true;
  return false;
}

// The number of skipped items, and the line and size of the first one.
struct LeftOut {
  std::size_t count = 0, line = 0, size = 0;
  void add(std::size_t at_line, std::size_t of_size) {
    if (count++ == 0) line = at_line, size = of_size;
  }
};

// Node 2, gpu_id f7bc:
inline bool parse_node(std::string_view text, int& node, std::uint32_t& gpu_id) noexcept {
  Cursor cursor(text);
  return cursor.take_all("Node ", node, ", gpu_id ", gpu_id, ":") && cursor.is_done();
}

}  // namespace weir::kfd
