// What the texts of the queue lab share: headings, words, warnings. Knows no experiment.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.h"
#include "report/text/fields.h"

namespace weir::queues_text {

using fields::at;
using fields::number;
using fields::text;

// "-" for null.
std::string duration(const Json& json, std::initializer_list<const char*> keys);

// "weir queues limits on cuda:0 (NVIDIA H200)" and a blank line.
std::string heading(const Json& document);
// Two blanks, the label, and the value in a separate column, wrapped at 80 columns.
void line(std::string& out, std::string_view label, std::string_view value);
// Why something is missing: the document's "unavailable" under that name; empty where there is none.
std::string reason(const Json& document, const std::string& name);
// The document's warnings, in the format of `weir run`.
void warnings(std::string& out, const Json& document);

}  // namespace weir::queues_text
