// Words for values of a weir.analysis/2 document, shared by its sections. Knows no section.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "report/text/fields.h"

namespace weir::analysis {

using fields::at;
using fields::bytes;
using fields::first;
using fields::is_true;
using fields::number;
using fields::percent;
using fields::word;
using weir::counted;

inline std::string duration(const Json& json, const char* key) { return fields::duration(json, {key}); }
// duration(use, "duration_ns", "p50")
inline std::string duration(const Json& json, const char* quantity, const char* figure) {
  return fields::duration(json, {quantity, figure});
}
inline std::string count(const Json& json, const char* key) { return fields::count(json, {key}); }

// "1 stream", "4 streams"
inline std::string counted(const Json& json, const char* key, const char* noun) {
  const std::string value = count(json, key);
  return fmt::format("{} {}{}", value, noun, value == "1" ? "" : "s");
}

inline std::string share_of(const Json& json, const char* part, const char* whole) {
  const auto a = number(json, {part}), b = number(json, {whole});
  return a && b && *b > 0 ? percent(std::optional(*a / *b)) : "-";
}

inline std::string with_share(const Json& times, const char* part, const char* whole) {
  return fmt::format("{} ({})", duration(times, part), share_of(times, part, whole));
}

inline std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  if (list.is_array())
    for (const Json& value : list) values.push_back(value.is_number() ? value.get<double>() : 0);
  return values;
}

inline std::string joined(const Json& list, std::size_t most) {
  std::string text;
  std::size_t shown = 0;
  for (const Json& item : list) {
    if (shown == most) return text + fmt::format(" and {} more", list.size() - most);
    text += (shown++ > 0 ? ", " : "") + fields::text(item, {});
  }
  return text;
}

inline std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

}  // namespace weir::analysis
