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

// A value among those of WEIR_NAMED() whose name in the document is not the one in the source.
struct NamedValue {
  const char* name;
  Json value;
};
template <class Value = Json>
NamedValue named(const char* name, Value&& value) {
  return {name, json_of(std::forward<Value>(value))};
}

// Takes the first argument off `names`, which are as spelled in WEIR_NAMED(), and returns the last name in it: the
// first of "text_or_null(found->reason), times.span_ns" is "reason".
std::string next_name(std::string_view& names);

template <class... Values>
Json named_values(std::string_view names, Values&&... values) {
  Json json = Json::object();
  const auto append = [&]<class Value>(Value&& value) {
    std::string name = next_name(names);
    if constexpr (std::is_same_v<Value, NamedValue>)
      json.append(value.name, std::move(value.value));
    else
      json.append(std::move(name), json_of(std::forward<Value>(value)));
  };
  (append(std::forward<Values>(values)), ...);
  return json;
}

// WEIR_NAMED(times.span_ns, times.busy_ns) is {"span_ns": ..., "busy_ns": ...}. The name is the last one that is
// written: text_or_null(row.reason) is "reason", queue.launched() is "launched", named("id", row.number) is "id".
#define WEIR_NAMED(...) ::weir::named_values(#__VA_ARGS__, __VA_ARGS__)

// An array of the results of `each` for the elements.
template <class List, class Each>
Json json_list(const List& list, Each each) {
  Json json = Json::array();
  for (const auto& element : list) json.push_back(each(element));
  return json;
}

}  // namespace weir
