#include "trace/list.h"

#include <vector>

namespace weir {

std::span<const Importer> importers() {
  static const std::vector<Importer> kImporters = {
      importer_list::rocprof_json(),
      importer_list::kineto(),
  };
  return kImporters;
}

}  // namespace weir
