#include "report/text/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_gate.h"
#include "base/units.h"

namespace weir::fields {

std::optional<double> number(const Json& json, JsonPath keys) {
  const Json& value = at(json, keys);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string text(const Json& json, JsonPath keys) {
  const Json& value = at(json, keys);
  return value.is_null() ? "-" : for_line(value.is_string() ? value.string() : value.dump());
}

std::string string(const Json& json, JsonPath keys, const std::string& otherwise) {
  const Json& value = at(json, keys);
  return value.is_string() ? for_line(value.string()) : otherwise;
}

std::string first_line(const Json& json, JsonPath keys) {
  const Json& value = at(json, keys);
  return value.is_string() ? for_line(value.string().substr(0, value.string().find('\n'))) : std::string();
}

bool is_true(const Json& json, JsonPath keys) { return at(json, keys) == true; }

const Json& list(const Json& json, JsonPath keys) {
  static const Json kNone = Json::array();
  const Json& value = at(json, keys);
  return value.is_array() ? value : kNone;
}

const Json& object(const Json& json, JsonPath keys) {
  static const Json kNone = Json::object();
  const Json& value = at(json, keys);
  return value.is_object() ? value : kNone;
}

std::vector<std::pair<std::string, const Json&>> members(const Json& object) {
  std::vector<std::pair<std::string, const Json&>> all;
  if (!object.is_object()) return all;
  for (const auto& [name, value] : object.items()) all.emplace_back(for_line(name), value);
  return all;
}

std::optional<std::pair<double, double>> interval(const Json& json, JsonPath keys) {
  const Json& pair = at(json, keys);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number()) return std::nullopt;
  return std::pair(pair[0].get<double>(), pair[1].get<double>());
}

std::string duration(std::optional<double> ns, const char* otherwise) { return ns ? format_duration(*ns) : otherwise; }

std::string duration(const Json& json, std::initializer_list<const char*> keys, const char* otherwise) {
  return duration(number(json, keys), otherwise);
}

std::string percent(std::optional<double> share) { return share ? fmt::format("{:.1f} %", 100 * *share) : "-"; }

std::string percent(const Json& json, std::initializer_list<const char*> keys) { return percent(number(json, keys)); }

std::string count(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = number(json, keys);
  return value ? fmt::format("{:.0f}", *value) : "-";
}

std::string bytes(const Json& json, std::initializer_list<const char*> keys) {
  const auto value = number(json, keys);
  return value ? format_bytes(static_cast<std::uint64_t>(std::clamp(*value, 0.0, 1e18))) : "-";
}

std::string joined(const Json& list, std::string_view glue) {
  std::string words;
  for (const Json& word : list)
    if (word.is_string()) words += fmt::format("{}{}", words.empty() ? "" : glue, for_line(word.string()));
  return words;
}

}  // namespace weir::fields
