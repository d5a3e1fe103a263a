#include "report/text/fields.h"

namespace weir::fields {

const Json& at(const Json& json, std::initializer_list<const char*> keys) {
  static const Json kNull;
  const Json* here = &json;
  for (const char* key : keys) {
    if (!here->is_object() || !here->contains(key)) return kNull;
    here = &(*here)[key];
  }
  return *here;
}

std::optional<double> number(const Json& json, std::initializer_list<const char*> keys) {
  const Json& value = at(json, keys);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string text(const Json& json, std::initializer_list<const char*> keys) {
  const Json& value = at(json, keys);
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "-" : value.dump();
}

}  // namespace weir::fields
