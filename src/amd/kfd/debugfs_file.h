// What KFD's files in debugfs have in common: lines for one parser after another, and the line that begins a node.
// Knows no file by itself.
#pragma once

#include "amd/kfd/text.h"

namespace weir::kfd {

// `Parser` is made from a File&, takes line(text, number) for each line, and finish() at the end.
template <class File, class Parser>
File parse_file(std::string_view text, const std::string& name) {
  File file;
  file.name = name;
  file.bytes = text.size();
  Parser parser(file);
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) parser.line(line, lines.number());
  file.lines = lines.number();
  parser.finish();
  return file;
}

// Node 2, gpu_id f7bc:
inline bool parse_node(std::string_view text, int& node, std::uint32_t& gpu_id) noexcept {
  Cursor cursor(text);
  return cursor.word("Node ") && cursor.decimal(node) && cursor.word(", gpu_id ") && cursor.hex(gpu_id) &&
         cursor.word(":") && cursor.is_done();
}

}  // namespace weir::kfd
