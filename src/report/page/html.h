// A report's document inside its page: one HTML file that needs no network. Knows the template's two places; never
// looks into the document.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace weir::page {

// The document as JSON that is safe inside a script element: ASCII alone, with no character that HTML obeys. Bytes that
// are not UTF-8 are replaced.
std::string script_json(const Json& document);

// The template with the document and its title in place. Fails where it is no template.
std::string html_page(std::string_view html_template, const Json& document);

}  // namespace weir::page
