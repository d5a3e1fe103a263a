// The trace formats that can be read, in the order in which they are tried: a file each beside this one, and its name
// here.
#pragma once

#include <span>

#include "trace/import/importer.h"

#define WEIR_IMPORTERS                                                                                              \
  weir_capture(), weir_recording(), nsys(), rpd(), rocprof_json(), kineto(), rocprof_csv(), cupti_text(), xplane(), \
      perfetto()

namespace weir {

std::span<const Importer> importers();

namespace importer_list {
Importer WEIR_IMPORTERS;
}  // namespace importer_list

}  // namespace weir
