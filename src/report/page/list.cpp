#include "report/page/list.h"

#include "base/schemas.h"
#include "report/text/documents.h"

namespace weir::page {

Section* section_for(std::string_view schema) {
#define WEIR_LOOK_UP(name) \
  if (schema == schemas::name) return section_list::name;
  WEIR_PICTURES(WEIR_LOOK_UP)
#undef WEIR_LOOK_UP
  return text_function(schema) == nullptr ? nullptr : section_list::text;
}

}  // namespace weir::page
