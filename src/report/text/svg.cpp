#include "report/text/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/text/escape.h"

namespace weir {

std::string svg_escaped(std::string_view text) {
  std::string plain(text);
  std::replace_if(plain.begin(), plain.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return markup_escaped(plain);
}

std::string svg_label(double x, double y, std::string_view style, std::string_view words, std::string_view anchor) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", style, x, y, anchor,
                     svg_escaped(words));
}

std::string svg_box(double x, double y, double width, double height, std::string_view style) {
  return fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", style, x, y,
                     width, height);
}

std::string svg_picture(double width, double height, std::string_view style, std::string_view body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n"
      "{2}<rect class=\"b\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n{3}</svg>\n",
      width, height, style, body);
}

}  // namespace weir
