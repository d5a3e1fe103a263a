// The trace formats that can be read, in the order in which they are tried.
#pragma once

#include <span>

#include "trace/import/importer.h"

namespace weir {

std::span<const Importer> importers();

namespace importer_list {
Importer kineto();
Importer rocprof_json();
Importer rocprof_csv();
Importer nsys();
Importer rpd();
Importer cupti_text();
Importer weir_capture();
}  // namespace importer_list

}  // namespace weir
