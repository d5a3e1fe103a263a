#include "device/compiler_log.h"

namespace weir {

std::string first_log_lines(std::string_view log, int max_lines) {
  std::string text;
  int lines = 0;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (line.find_first_not_of(std::string_view(" \t\r\0", 4)) == std::string_view::npos) continue;
    if (lines++ == max_lines) return text + "\n  ...";
    text += "\n  ";
    for (const char each : line)
      if (each == '\t' || static_cast<unsigned char>(each) >= ' ') text += each;
  }
  return text;
}

}  // namespace weir
