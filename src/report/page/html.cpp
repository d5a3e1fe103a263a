#include "report/page/html.h"

#include <algorithm>

#include "base/error.h"
#include "base/text_gate.h"
#include "report/text/fields.h"

namespace weir::page {
namespace {

constexpr std::string_view kPlace = ">__WEIR_DOCUMENT__<";  // the scripts may contain the placeholder too
constexpr std::string_view kTitle = "<title>", kTitleEnd = "</title>";

}  // namespace

std::string script_json(const Json& document) {
  const std::string json = document.dump(-1, true);
  std::string safe;
  safe.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    // These characters occur only in strings, where JSON readers treat \u003c as the same: "</script>" and "<!--" never
    // appear.
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      case '\x7f':
        safe += "\\u007f";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string html_page(std::string_view html_template, const Json& document) {
  const std::size_t place = html_template.find(kPlace);
  if (place == std::string_view::npos)
    fail("the page that was built into this program has no place for a document", "Build web/ and the program again.");
  const std::string json = script_json(document);
  std::string html;
  html.reserve(html_template.size() + json.size() + 4096);
  std::size_t done = 0;
  const std::size_t title = html_template.find(kTitle), title_end = html_template.find(kTitleEnd);
  if (title < title_end && title_end < place) {
    html.append(html_template.substr(0, title + kTitle.size()));
    html += for_markup(fields::text(document, {"title"}));
    done = title_end;
  }
  html.append(html_template.substr(done, place + 1 - done));
  html += json;
  html.append(html_template.substr(place + kPlace.size() - 1));
  return html;
}

}  // namespace weir::page
