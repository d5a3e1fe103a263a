#include "report/text/svg_text.h"

namespace weir {

std::string svg_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += '?';
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace weir
