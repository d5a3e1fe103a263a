#include "page/list.h"

namespace weir::page {

std::vector<Section> sections() {
  using namespace section_list;
  return {
      {"weir.comparison/1", comparison},
      {"weir.sweep/1", sweep},
  };
}

}  // namespace weir::page
