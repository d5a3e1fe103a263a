#include "trace/import/list.h"

#include <vector>

namespace weir {

std::span<const Importer> importers() {
  using namespace importer_list;
  static const std::vector<Importer> kImporters = {
      weir_capture(), nsys(), rpd(), rocprof_json(), kineto(), rocprof_csv(), cupti_text(),
  };
  return kImporters;
}

}  // namespace weir
