#include "report/text/documents.h"

namespace weir {

TextFunction* text_function(std::string_view schema) {
#define WEIR_LOOK_UP(name, version) \
  if (schema == schemas::name) return text_list::name;
  WEIR_TEXT_DOCUMENTS(WEIR_LOOK_UP)
#undef WEIR_LOOK_UP
  return nullptr;
}

}  // namespace weir
