// Embeds a report's document in its page: one HTML file that needs no network. Knows the template's two placeholders;
// never looks into the document.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace weir::page {

// The document as JSON that is safe inside a script element: ASCII only, without characters that are special in HTML.
// Invalid UTF-8 is replaced.
std::string script_json(const Json& document);

// The template with the document and its title filled in. Throws where it is not a template.
std::string html_page(std::string_view html_template, const Json& document);

}  // namespace weir::page
