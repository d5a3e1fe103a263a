#include "trace/import/list.h"

#include <vector>

namespace weir {

std::span<const Importer> importers() {
  using namespace importer_list;
  static const std::vector<Importer> kImporters = {WEIR_IMPORTERS};
  return kImporters;
}

}  // namespace weir
