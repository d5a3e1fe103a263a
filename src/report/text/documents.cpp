#include "report/text/documents.h"

#include <algorithm>

namespace weir {

DocumentText::DocumentText(const std::string& in_columns) {
  const std::size_t end = std::min(in_columns.find('\n'), in_columns.size());
  report.title = in_columns.substr(0, end);
  plain = in_columns.substr(std::min(in_columns.find_first_not_of('\n', end), in_columns.size()));
}

TextFunction* text_function(std::string_view schema) {
#define WEIR_LOOK_UP(name) \
  if (schema == schemas::name) return text_list::name;
  WEIR_TEXT_DOCUMENTS(WEIR_LOOK_UP)
#undef WEIR_LOOK_UP
  return nullptr;
}

}  // namespace weir
