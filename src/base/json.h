// JSON files: read with errors that name the position, written by base/file.h; and values of documents by path. Knows
// no particular document.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json_value.h"

namespace weir {

// Parses text that came from `name`; rejects text that is empty, truncated, malformed or nested too deeply.
Json parse_json(std::string_view text, const std::string& name);

// Reads and parses a file of up to kLargestDocument; reports a missing, unreadable, truncated or malformed one by name
// and position.
Json read_json(const std::filesystem::path& path);

// A document as text for a file. Invalid UTF-8 (paths and variables may contain any bytes) is replaced, because it must
// not cost a finished run its result.
std::string to_text(const Json& json);
std::string to_line(const Json& json);  // the same, in one line

// A number, or null if there is none: results never use 0 for "no data". NaN and infinity are null too.
Json number_or_null(std::optional<double> value);
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
// Null for an empty text.
Json text_or_null(std::string_view text);
// Null for a time that is not known, which is INT64_MIN everywhere.
Json time_or_null(std::int64_t ns);
// Null for a count that is 0 because it is not known.
template <JsonNumber T>
Json positive_or_null(T count) {
  return count > 0 ? Json(count) : Json();
}

// For untrusted documents: a member of an object, or the value at a path; null if it does not exist, or if something on
// the path is not an object.
using JsonPath = std::initializer_list<const char*>;
const Json& member(const Json& json, std::string_view name);
const Json& at_path(const Json& json, JsonPath path);

}  // namespace weir
