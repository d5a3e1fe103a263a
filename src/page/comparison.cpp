#include "page/list.h"

namespace weir::page::section_list {

void comparison(Page&, std::size_t, const Json&) {}

}  // namespace weir::page::section_list
