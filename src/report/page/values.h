// Values of a document as a report's items want them: of the right type and in range, or null. Documents are hostile;
// nothing here throws. Knows no document.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "base/json.h"
#include "report/text/fields.h"

namespace weir::page::values {

using fields::at;
using Keys = std::initializer_list<const char*>;

// 31 years: no time that anything took.
inline constexpr double kLongest = 1e18;

// A list; empty where the document has something else.
inline const Json& list(const Json& json, Keys keys) {
  static const Json kNone = Json::array();
  const Json& value = at(json, keys);
  return value.is_array() ? value : kNone;
}

// An object; empty where the document has something else.
inline const Json& object(const Json& json, Keys keys) {
  static const Json kNone = Json::object();
  const Json& value = at(json, keys);
  return value.is_object() ? value : kNone;
}

inline std::optional<double> finite(const Json& json, Keys keys) {
  const auto value = fields::number(json, keys);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Of times, rates and the like: not below 0, and not absurd.
inline std::optional<double> amount(const Json& json, Keys keys, double most = kLongest) {
  const auto value = finite(json, keys);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

inline Json number(const Json& json, Keys keys) { return number_or_null(finite(json, keys)); }
inline Json duration(const Json& json, Keys keys) { return number_or_null(amount(json, keys)); }

inline std::uint64_t count(const Json& json, Keys keys) {
  return static_cast<std::uint64_t>(amount(json, keys, 9e15).value_or(0));
}

// [low, high], times `scale`; null where there are not two numbers in order.
inline Json interval(const Json& json, Keys keys, double scale = 1) {
  const Json& pair = at(json, keys);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number()) return nullptr;
  const double low = pair[0].get<double>() * scale, high = pair[1].get<double>() * scale;
  return std::isfinite(low) && std::isfinite(high) && low <= high ? Json::array({low, high}) : Json(nullptr);
}

inline std::string word(const Json& json, Keys keys, const std::string& otherwise = {}) {
  const Json& value = at(json, keys);
  return value.is_string() ? value.get<std::string>() : otherwise;
}

inline Json word_or_null(const Json& json, Keys keys) {
  const Json& value = at(json, keys);
  return value.is_string() && !value.string().empty() ? value : Json(nullptr);
}

inline bool is_true(const Json& json, Keys keys) {
  const Json& value = at(json, keys);
  return value.is_boolean() && value.get<bool>();
}

// As a sentence: "x" -> "X."
inline std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (text.back() != '.' && text.back() != '!' && text.back() != '?') text += '.';
  return text;
}

}  // namespace weir::page::values
