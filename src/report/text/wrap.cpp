#include "report/text/wrap.h"

#include <algorithm>

namespace weir {

std::string wrapped(std::string_view text, std::size_t column) {
  std::string out;
  std::size_t at = column;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (at != column && at + 1 + end - begin > kReportColumns) {
      out += "\n" + std::string(column, ' ');
      at = column;
    } else if (at != column) {
      out += ' ';
      ++at;
    }
    out += text.substr(begin, end - begin);
    at += end - begin;
    begin = end + 1;
  }
  return out;
}

}  // namespace weir
