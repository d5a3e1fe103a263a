// Values of a document by their path. Documents may come from anywhere, so nothing about them is assumed.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace weir::fields {

// Follows keys as long as they exist; null otherwise.
inline const Json& at(const Json& json, JsonPath keys) { return at_path(json, keys); }
std::optional<double> number(const Json& json, JsonPath keys);
// A string as it is, "-" for null, anything else as JSON.
std::string text(const Json& json, JsonPath keys);
std::string string(const Json& json, JsonPath keys, const std::string& otherwise = {});
bool is_true(const Json& json, JsonPath keys);
// An array or an object; empty where the document has something else.
const Json& list(const Json& json, JsonPath keys);
const Json& object(const Json& json, JsonPath keys);
// [low, high]; empty where these are not two numbers.
std::optional<std::pair<double, double>> interval(const Json& json, JsonPath keys = {});

// The strings of a list; other elements are left out.
std::string joined(const Json& list, std::string_view glue = ", ");

// The first elements of a list, `most` at most.
inline auto first(const Json& list, std::size_t most) {
  struct {
    Json::const_iterator from, to;
    auto begin() const { return from; }
    auto end() const { return to; }
  } const part{list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(list.size(), most))};
  return part;
}

}  // namespace weir::fields
