#include "page/list.h"

namespace weir::page {

std::vector<Section> sections() {
  using namespace section_list;
  return {
      {"weir.comparison/1", comparison},
  };
}

}  // namespace weir::page
