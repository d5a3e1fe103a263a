// Values of a document by their path. Documents may come from anywhere, so nothing in them is taken for granted.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "base/json.h"

namespace weir::fields {

// Follows keys as long as they are there; null otherwise.
const Json& at(const Json& json, std::initializer_list<const char*> keys);
std::optional<double> number(const Json& json, std::initializer_list<const char*> keys);
// A string as it is, "-" for null, anything else as JSON.
std::string text(const Json& json, std::initializer_list<const char*> keys);

}  // namespace weir::fields
