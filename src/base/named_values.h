// Turns members of structs into members of a JSON object under their own names, so that no name is written twice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/json.h"

namespace weir {

// A value in the form used in documents: null if there is none, enumerators as the word from name_of() or to_string().
inline Json json_of(Json value) { return value; }
template <class Value>
Json json_of(const Value& value) {
  if constexpr (!std::is_enum_v<Value>)
    return value;
  else if constexpr (requires { name_of(value); })
    return name_of(value);
  else
    return to_string(value);
}
template <class Value>
Json json_of(const std::optional<Value>& value) {
  if constexpr (std::is_same_v<Value, double>)
    return number_or_null(value);
  else
    return value ? json_of(*value) : Json();
}

// `names` as spelled in WEIR_NAMED(): "times.span_ns, found->busy_ns, text_or_null(found->reason)".
template <class... Values>
Json named_values(std::string_view names, Values&&... values) {
  Json json = Json::object();
  const auto next_name = [&] {
    const std::size_t end = names.find(',');
    std::string_view name = names.substr(0, end);
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
    name = name.substr(0, name.find_last_not_of(" ()") + 1);
    name.remove_prefix(name.find_last_of(" .>(*") + 1);
    return std::string(name);
  };
  (json.append(next_name(), json_of(std::forward<Values>(values))), ...);
  return json;
}

// WEIR_NAMED(times.span_ns, times.busy_ns) is {"span_ns": ..., "busy_ns": ...}. The name is the last one that is
// written: text_or_null(row.reason) is "reason", queue.launched() is "launched". No calls with commas.
#define WEIR_NAMED(...) ::weir::named_values(#__VA_ARGS__, __VA_ARGS__)

// An array of the results of `each` for the elements.
template <class List, class Each>
Json json_list(const List& list, Each each) {
  Json json = Json::array();
  for (const auto& element : list) json.push_back(each(element));
  return json;
}

}  // namespace weir
