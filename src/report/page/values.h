// Values of a document in the form that a report's items need: of the right type and in range, or null. Documents are
// hostile; nothing here throws. Knows no document.
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
using fields::is_true;
using fields::list;
using fields::object;
using Keys = std::initializer_list<const char*>;

// 31 years: longer than any real duration.
inline constexpr double kLongest = 1e18;

inline std::optional<double> finite(const Json& json, Keys keys) {
  const auto value = fields::number(json, keys);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// For times, rates and the like: not below 0, and not above `most`.
inline std::optional<double> amount(const Json& json, Keys keys, double most = kLongest) {
  const auto value = finite(json, keys);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

inline Json number(const Json& json, Keys keys) { return number_or_null(finite(json, keys)); }
inline Json duration(const Json& json, Keys keys) { return number_or_null(amount(json, keys)); }

inline std::uint64_t count(const Json& json, Keys keys) {
  return static_cast<std::uint64_t>(amount(json, keys, 9e15).value_or(0));
}

// [low, high], times `scale`; null unless these are two numbers in order.
inline Json interval(const Json& json, Keys keys, double scale = 1) {
  const auto pair = fields::interval(json, keys);
  if (!pair) return nullptr;
  const double low = pair->first * scale, high = pair->second * scale;
  return std::isfinite(low) && std::isfinite(high) && low <= high ? Json::array({low, high}) : Json(nullptr);
}

inline std::string word(const Json& json, Keys keys, const std::string& otherwise = {}) {
  return fields::string(json, keys, otherwise);
}

inline Json word_or_null(const Json& json, Keys keys) {
  const Json& value = at(json, keys);
  return value.is_string() && !value.string().empty() ? value : Json(nullptr);
}

// With an end: "node7 is slow" -> "node7 is slow."
inline std::string ended(std::string text) {
  if (!text.empty() && text.back() != '.' && text.back() != '!' && text.back() != '?') text += '.';
  return text;
}

// As a sentence: "x" -> "X."
inline std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return ended(std::move(text));
}

}  // namespace weir::page::values
