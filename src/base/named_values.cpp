#include "base/named_values.h"

#include <algorithm>

namespace weir {

std::string next_name(std::string_view& names) {
  int depth = 0;
  bool is_quoted = false;
  std::size_t end = 0;
  for (; end < names.size(); ++end) {
    const char c = names[end];
    if (c == '"' && (end == 0 || names[end - 1] != '\\')) is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (c == ',' && depth == 0) break;
  }
  std::string_view name = names.substr(0, end);
  names.remove_prefix(std::min(end + 1, names.size()));
  name = name.substr(0, name.find_last_not_of(" ()") + 1);
  name.remove_prefix(name.find_last_of(" .>(*") + 1);
  return std::string(name);
}

}  // namespace weir
