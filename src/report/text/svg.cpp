#include "report/text/svg.h"

namespace weir {

Markup svg_label(double x, double y, std::string_view style, std::string_view words, std::string_view anchor) {
  return Markup::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", style, x, y,
                        anchor, words);
}

Markup svg_box(double x, double y, double width, double height, std::string_view style) {
  return Markup::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", style, x,
                        y, width, height);
}

std::string svg_picture(double width, double height, const Markup& style, const Markup& body) {
  return Markup::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
             "{1:.0f}\">\n"
             "{2}<rect class=\"b\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n{3}</svg>\n",
             width, height, style, body)
      .text();
}

}  // namespace weir
