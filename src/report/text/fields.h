// Values of a document by their path. Documents may come from anywhere, so nothing about them is assumed.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir::fields {

// Follows keys as long as they exist; null otherwise.
inline const Json& at(const Json& json, JsonPath keys) { return at_path(json, keys); }
std::optional<double> number(const Json& json, JsonPath keys);
// A string, "-" for null, anything else as JSON. All texts from here are parts of a line for people: they have passed
// the gate (for_line).
std::string text(const Json& json, JsonPath keys);
inline std::string word(const Json& json, const char* key) { return text(json, {key}); }
std::string string(const Json& json, JsonPath keys, const std::string& otherwise = {});
bool is_true(const Json& json, JsonPath keys);
// An array or an object; empty where the document has something else.
const Json& list(const Json& json, JsonPath keys);
const Json& object(const Json& json, JsonPath keys);
// The first line of a message that may have several; empty where there is no text.
std::string first_line(const Json& json, JsonPath keys);
// The members of an object, by names that have passed the gate.
std::vector<std::pair<std::string, const Json&>> members(const Json& object);
// [low, high]; empty where these are not two numbers.
std::optional<std::pair<double, double>> interval(const Json& json, JsonPath keys = {});

// For people; `otherwise` or "-" where there is no number.
std::string duration(std::optional<double> ns, const char* otherwise = "-");
std::string duration(const Json& json, std::initializer_list<const char*> keys = {}, const char* otherwise = "-");
std::string percent(std::optional<double> share);  // 12.3 %
std::string percent(const Json& json, std::initializer_list<const char*> keys = {});
std::string count(const Json& json, std::initializer_list<const char*> keys);  // 1234
std::string bytes(const Json& json, std::initializer_list<const char*> keys = {});

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
